# One command for contributors. `just` without a name runs everything that must pass before a commit.

default: test

# format the code
fmt:
    cargo fmt --all

# all lints, as errors
clippy:
    cargo clippy --locked --workspace --all-targets -- -D warnings

# every check of the repository
test:
    ./test

# format, lints and unit tests only
quick:
    ./test --quick

# many more kills, power cuts and crashes
long:
    ./test --long

# the repository's own rules: sizes, names, arrows between crates
tidy:
    cargo test --locked --package sage --test it tidy

# licences and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny --locked check

# what the engine costs on this machine
bench:
    cargo run --locked --release --package sage -- bench engine
