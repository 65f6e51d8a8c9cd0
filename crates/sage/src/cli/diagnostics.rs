//! What is wrong with a template, for people.

use sage_core::check::Loaded;

/// Prints errors and warnings to stderr, as a compiler would.
pub fn report(file: &str, loaded: &Loaded, text: &str) {
    for shown in loaded.show(file, text) {
        eprintln!("{shown}");
    }
}

/// Warnings are for people: with `--json` only errors are printed.
pub fn reporter(json: bool) -> impl FnMut(&str, &Loaded, &str) {
    move |file, loaded, text| {
        if !json || loaded.template.is_none() {
            report(file, loaded, text);
        }
    }
}
