//! The token: a new one each time, or one that is kept in a file of the user's.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cli::failure::Failure;
use crate::mcp::transport::Token;

pub fn token(file: Option<&Path>) -> Result<Token, Failure> {
    let random = || Token::random().map_err(|error| Failure::failed(format!("no randomness: {error}")));
    let Some(path) = file else { return random() };
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => kept(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = random()?;
            sage_fence::private::write_durable(path, format!("{}\n", token.text()).as_bytes())
                .map_err(|error| Failure::usage(format!("cannot write the token to `{shown}`: {error}")))?;
            Ok(token)
        }
        Err(error) => Err(Failure::usage(format!("cannot read the token file `{shown}`: {error}"))),
    }
}

fn kept(path: &Path, text: &str) -> Result<Token, Failure> {
    let shown = path.display();
    let mode = path.metadata().map_or(0, |meta| meta.permissions().mode());
    if mode & 0o077 != 0 {
        return Err(Failure::usage(format!("others can read the token file `{shown}`"))
            .hint(format!("chmod 600 '{shown}'")));
    }
    Token::chosen(text).ok_or_else(|| {
        Failure::usage(format!("`{shown}` holds no token: 16 or more letters, digits and signs in one line"))
            .hint(format!("rm '{shown}'    (a new one is made)"))
    })
}
