//! Integration tests of the binary and of the repository.

mod tidy;
