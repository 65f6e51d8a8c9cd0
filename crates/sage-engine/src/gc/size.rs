//! How much a tree of files takes. Links are not followed, and what cannot be read counts nothing.

use std::path::Path;

use crate::vfs::Vfs;

pub fn tree_bytes(vfs: &dyn Vfs, path: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        match vfs.metadata(&path) {
            Ok(meta) if meta.is_file => bytes += meta.len,
            // Anything but a directory cannot be listed.
            Ok(_) => {
                let names = vfs.list(&path).unwrap_or_default();
                open.extend(names.into_iter().map(|name| path.join(name)));
            }
            Err(_) => {}
        }
    }
    bytes
}
