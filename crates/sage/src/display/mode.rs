//! Which of the views a run is shown in.

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A live tree, on stderr.
    Tree,
    /// A line per notable event, on stdout.
    Lines,
    /// A JSON object per event, on stdout.
    Json,
    Quiet,
}

impl Mode {
    pub fn choose(json: bool, quiet: bool, stdout_is_terminal: bool) -> Mode {
        match (json, quiet, stdout_is_terminal) {
            (true, _, _) => Mode::Json,
            (_, true, _) => Mode::Quiet,
            (_, _, true) => Mode::Tree,
            _ => Mode::Lines,
        }
    }
}
