//! Every protected name by every trick, and what stays possible.

use std::os::unix::fs::symlink;

use sage_core::fence::PROTECTED;

use super::*;

/// A project with every protected entry, as folders or as files.
fn project() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("project");
    std::fs::create_dir_all(root.join("docs")).unwrap();
    for name in PROTECTED {
        match name.contains("toml") || name.contains("json") {
            true => std::fs::write(root.join(name), "mine").unwrap(),
            false => {
                std::fs::create_dir(root.join(name)).unwrap();
                std::fs::write(root.join(name).join("file"), "mine").unwrap();
            }
        }
    }
    std::fs::write(dir.path().join("secret"), "mine").unwrap();
    (dir, root)
}

/// The file that a protected entry is, or that lies in it.
fn file_of(root: &Path, name: &str) -> PathBuf {
    let path = root.join(name);
    if path.is_dir() { path.join("file") } else { path }
}

// covers: R17
#[test]
fn nothing_that_configures_agents_is_written_by_any_trick() {
    for name in PROTECTED {
        let (_dir, root) = project();
        let target = file_of(&root, name);
        let plain = target.strip_prefix(&root).unwrap().to_str().unwrap().to_string();
        symlink(name, root.join("link")).unwrap();
        symlink(&target, root.join("absolute-link")).unwrap();
        symlink("link", root.join("docs/second-link")).unwrap();
        symlink("../link", root.join("docs/third-link")).unwrap();
        std::fs::create_dir_all(root.join("nested/repo").join(name)).unwrap();
        let below = if plain == name { "" } else { "/file" };
        let tricks = [
            plain.clone(),
            plain.to_uppercase(),
            format!("./{plain}"),
            format!("docs/../{plain}"),
            format!("missing/../{plain}"),
            format!("{name}./new"),
            format!("{name} /new"),
            format!("{plain}/"),
            format!("//{}", target.display()),
            target.display().to_string(),
            format!("link{below}"),
            "absolute-link".to_string(),
            format!("docs/third-link{below}"),
            format!("nested/repo/{name}/new"),
            format!("nested/new/{name}"),
            format!("{}\u{200d}{}/new", &name[..2], &name[2..]),
            name.replace('s', "\u{17f}"),
        ];
        let fence = Fence::new(&root);
        for trick in tricks {
            let refused = fence.write(Path::new(&trick), b"theirs").unwrap_err();
            assert!(matches!(refused, Refused::Protected(_)), "{name}: {trick:?}: {refused}");
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine", "{name}");
    }
}

// covers: R17
#[test]
fn nothing_outside_is_read_or_written() {
    let (dir, root) = project();
    symlink(dir.path(), root.join("up")).unwrap();
    symlink(dir.path().join("new"), root.join("nowhere")).unwrap();
    symlink("/proc/self/root/tmp", root.join("magic")).unwrap();
    let fence = Fence::new(&root);
    for path in
        ["../secret", "up/secret", "docs/../../secret", "/etc/passwd", "missing/../../secret", "magic/x"]
    {
        assert!(fence.read(Path::new(path), 99).is_err(), "{path}");
        assert!(fence.write(Path::new(path), b"x").is_err(), "{path}");
    }
    assert!(fence.write(Path::new("nowhere"), b"x").is_err());
    assert!(!dir.path().join("new").exists());
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "mine");
}

// covers: R17
#[test]
fn a_hard_link_or_the_target_of_a_link_is_not_a_way_around() {
    let (_dir, root) = project();
    // Beside the file itself it is recognised.
    std::fs::hard_link(root.join(".mcp.json"), root.join("notes.json")).unwrap();
    // `.claude` and `sage.toml` are links of the user's own.
    std::fs::remove_dir_all(root.join(".claude")).unwrap();
    std::fs::remove_file(root.join("sage.toml")).unwrap();
    std::fs::create_dir_all(root.join("config/claude")).unwrap();
    std::fs::write(root.join("config/sage.toml"), "mine").unwrap();
    symlink("config/claude", root.join(".claude")).unwrap();
    symlink("config/sage.toml", root.join("sage.toml")).unwrap();
    let fence = Fence::new(&root);
    for path in ["notes.json", "config/claude/settings.json", "config/sage.toml"] {
        let refused = fence.write(Path::new(path), b"theirs").unwrap_err();
        assert!(matches!(refused, Refused::Protected(_)), "{path}: {refused}");
    }
    // Elsewhere the file is replaced, and what it was a link to stays.
    std::fs::hard_link(root.join(".git/file"), root.join("docs/copy")).unwrap();
    fence.write(Path::new("docs/copy"), b"theirs").unwrap();
    assert_eq!(std::fs::read_to_string(root.join(".git/file")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(root.join("docs/copy")).unwrap(), "theirs");
}

// covers: R17
#[test]
fn what_is_swapped_after_the_check_is_refused() {
    let (dir, root) = project();
    let fence = Fence::new(&root);
    let inside = fence.writable(Path::new("docs/deep/file")).unwrap();
    std::fs::remove_dir(root.join("docs")).unwrap();
    for target in [".git", "/", "../"] {
        symlink(target, root.join("docs")).unwrap();
        assert!(fence.folder_of(&inside).is_err(), "{target}");
        std::fs::remove_file(root.join("docs")).unwrap();
    }
    assert!(!root.join(".git/deep").exists() && !dir.path().join("deep").exists());
    // A link in the place of the file itself is replaced.
    let inside = fence.writable(Path::new("report")).unwrap();
    let (folder, name) = fence.folder_of(&inside).unwrap();
    symlink(".git/file", root.join("report")).unwrap();
    folder.replace(&name, b"theirs").unwrap();
    assert_eq!(std::fs::read_to_string(root.join(".git/file")).unwrap(), "mine");
    // The folder is the one that was opened, also if another one has its name now.
    let (folder, name) = fence.folder_of(Path::new("open/file")).unwrap();
    std::fs::rename(root.join("open"), root.join("moved")).unwrap();
    symlink(".git", root.join("open")).unwrap();
    folder.replace(&name, b"x").unwrap();
    assert!(root.join("moved/file").exists());
    assert_eq!(std::fs::read_to_string(root.join(".git/file")).unwrap(), "mine");
}

// covers: R17
#[test]
fn sages_own_files_are_not_read_wherever_they_are() {
    let (_dir, root) = project();
    for dir in [".sage/state", ".sage/templates", "own/state", "own/templates"] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
        std::fs::write(root.join(dir).join("serve.json"), "token").unwrap();
    }
    symlink(".sage/state", root.join("docs/look")).unwrap();
    symlink("../.sage/state", root.join("docs/see")).unwrap();
    std::fs::hard_link(root.join("own/state/serve.json"), root.join("docs/copy.json")).unwrap();
    let fence = Fence::new(&root).closing(&[root.join("own")]);
    let read = |path: &str| fence.read(Path::new(path), 99);
    for path in
        [".sage/state/serve.json", "docs/see/serve.json", ".SAGE/state/serve.json", "own/state/serve.json"]
    {
        let refused = read(path).unwrap_err();
        assert!(matches!(refused, Refused::Private(_)) || refused.is_missing(), "{path}: {refused}");
    }
    assert!(matches!(read("docs/copy.json"), Err(Refused::Private(_))));
    assert_eq!(read(".sage/templates/serve.json").unwrap(), b"token");
    assert_eq!(read("own/templates/serve.json").unwrap(), b"token");
    assert!(fence.write(Path::new("own/templates/x"), b"x").is_err());
}

// covers: R17
#[test]
fn a_worktree_and_a_folder_in_the_project_work_as_ever() {
    let (_dir, root) = project();
    let tree = root.join(".sage/worktrees/run/step");
    std::fs::create_dir_all(&tree).unwrap();
    let fence = Fence::around(&tree, &tree).closing(&[root.join(".sage")]);
    fence.write(Path::new("src/a.rs"), b"x").unwrap();
    assert!(fence.write(Path::new(".git"), b"x").is_err() && fence.write(Path::new("../x"), b"x").is_err());
    assert_eq!(fence.read(Path::new("src/a.rs"), 9).unwrap(), b"x");
    // Relative paths begin where the step works; a place inside of something protected is protected.
    let fence = Fence::around(&root, &root.join("docs"));
    fence.write(Path::new("../top.txt"), b"x").unwrap();
    assert!(root.join("top.txt").exists());
    assert!(Fence::around(&root, &root.join(".git")).write(Path::new("x"), b"x").is_err());
    assert!(Fence::around(&tree, &root.join(".git")).write(Path::new("x"), b"x").is_err());
}

// covers: R17
#[test]
fn only_files_are_read_and_replaced_and_modes_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, root) = project();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let fence = Fence::new(&root);
    for path in ["pipe", "docs"] {
        assert!(matches!(fence.read(Path::new(path), 9), Err(Refused::NotAFile(_))), "{path}");
        assert!(matches!(fence.write(Path::new(path), b"x"), Err(Refused::NotAFile(_))), "{path}");
    }
    std::fs::write(root.join("run.sh"), "1234567890").unwrap();
    std::fs::set_permissions(root.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(matches!(fence.read(Path::new("run.sh"), 9), Err(Refused::TooLarge { bytes: 10, .. })));
    fence.write(Path::new("run.sh"), b"2").unwrap();
    assert_eq!(root.join("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), PROTECTED.len() + 3, "no temporary file is left");
}

/// Clones bring links in the place of folders, in them, and to what is not there yet.
// covers: R17
#[test]
fn links_at_protected_names_protect_what_they_lead_to() {
    let (_dir, root) = project();
    for folder in ["tpl", "agents/deep", "free"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink("../tpl", root.join(".sage/templates")).unwrap();
    symlink("../agents/deep", root.join(".claude/agents")).unwrap();
    std::fs::remove_file(root.join(".mcp.json")).unwrap();
    symlink("docs/servers.json", root.join(".mcp.json")).unwrap();
    symlink("../later/hook", root.join(".git/hooks")).unwrap();
    symlink("..", root.join(".codex/back")).unwrap();
    let fence = Fence::new(&root);
    for path in [
        ".sage/templates/x.yaml",
        ".SAGE/templates/x.yaml",
        "tpl/x.yaml",
        "tpl",
        ".claude/agents/x.md",
        "agents/deep/x.md",
        "docs/servers.json",
        "docs/../docs/servers.json",
        "later/hook/pre-commit",
        ".codex/back/free/x",
    ] {
        let refused = fence.write(Path::new(path), b"theirs").unwrap_err();
        assert!(matches!(refused, Refused::Protected(_)), "{path}: {refused}");
        assert!(fence.protects(Path::new(path)), "{path}");
    }
    assert!(!root.join("docs/servers.json").exists() && !root.join("tpl/x.yaml").exists());
    for path in ["free/x", "agents/x.md", "docs/other.json", "later/x"] {
        fence.write(Path::new(path), b"x").unwrap_or_else(|refused| panic!("{path}: {refused}"));
        assert!(!fence.protects(Path::new(path)), "{path}");
    }
}

// covers: R17
#[test]
fn what_cannot_be_followed_is_protected() {
    let (dir, root) = project();
    std::fs::remove_file(root.join(".mcp.json")).unwrap();
    symlink("../.mcp.json", root.join("docs/dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("../gone", root.join("docs/gone")).unwrap();
    std::fs::create_dir(dir.path().join("dotfiles")).unwrap();
    symlink("dotfiles", dir.path().join(".claude")).unwrap();
    let fence = Fence::new(&root);
    for path in ["docs/dangling", "loop", "loop/x", "../.claude/settings.json"] {
        assert!(fence.protects(Path::new(path)), "{path}");
        assert!(fence.write(Path::new(path), b"x").is_err(), "{path}");
    }
    assert!(!fence.protects(Path::new("docs/gone")), "it leads to nothing that matters");
    assert!(fence.write(Path::new("docs/gone"), b"x").is_err(), "but nothing is written through it");
    assert!(!root.join(".mcp.json").exists() && !root.join("gone").exists());
}
