//! Why a command line cannot be read for certain.

/// What was found; texts follow "it uses" or stand alone, as the agent and the person are told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("it is empty")]
    Empty,
    #[error("it uses a variable (`{0}`)")]
    Variable(String),
    #[error("it uses command substitution")]
    Substitution,
    #[error("it uses process substitution")]
    Process,
    #[error("it starts a background job")]
    Background,
    #[error("it uses the shell keyword `{0}`")]
    Keyword(String),
    #[error("it uses brace expansion")]
    Braces,
    #[error("it has an unclosed quote")]
    Quote,
    #[error("it has an unclosed or unexpected parenthesis")]
    Parenthesis,
    #[error("its here-document cannot be read for certain")]
    HereDocument,
    #[error("a redirection cannot be read for certain")]
    Redirection,
    #[error("it has a character that shells read differently (`{0}`)")]
    Character(String),
    #[error("an operator has no command")]
    Operator,
    #[error("it is nested too deeply")]
    Depth,
}
