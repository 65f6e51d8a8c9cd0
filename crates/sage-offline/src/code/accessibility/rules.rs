//! What each element needs so that everybody can use it.

use std::collections::HashSet;

use super::super::issue::{Issue, Severity};
use super::tags::{Event, Tag};

const INTERACTIVE: &[&str] = &[
    "a", "button", "input", "select", "textarea", "summary", "option", "label", "details", "video", "audio",
    "form", "dialog", "area",
];
const VOID: &[&str] =
    &["img", "input", "br", "hr", "meta", "link", "source", "area", "base", "col", "embed", "track", "wbr"];
const ARIA: &[&str] = &[
    "activedescendant",
    "atomic",
    "autocomplete",
    "braillelabel",
    "brailleroledescription",
    "busy",
    "checked",
    "colcount",
    "colindex",
    "colindextext",
    "colspan",
    "controls",
    "current",
    "describedby",
    "description",
    "details",
    "disabled",
    "dropeffect",
    "errormessage",
    "expanded",
    "flowto",
    "grabbed",
    "haspopup",
    "hidden",
    "invalid",
    "keyshortcuts",
    "label",
    "labelledby",
    "level",
    "live",
    "modal",
    "multiline",
    "multiselectable",
    "orientation",
    "owns",
    "placeholder",
    "posinset",
    "pressed",
    "readonly",
    "relevant",
    "required",
    "roledescription",
    "rowcount",
    "rowindex",
    "rowindextext",
    "rowspan",
    "selected",
    "setsize",
    "sort",
    "valuemax",
    "valuemin",
    "valuenow",
    "valuetext",
];

/// A rule that an element breaks.
struct Broken {
    what: &'static str,
    why: String,
    severity: Severity,
    confidence: f64,
}

/// `whole` is for files that may be full documents.
pub(super) fn issues(path: &str, events: &[Event], whole: bool) -> Vec<Issue> {
    let labels = labelled(events);
    let mut issues = Vec::new();
    let mut around: Vec<&Tag> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event {
            Event::Open(tag) => {
                let broken = checks(tag, &around, &labels, || content(events, index));
                issues.extend(broken.into_iter().map(|broken| issue(path, tag.line, broken)));
                if !tag.closed && !VOID.contains(&tag.name.as_str()) {
                    around.push(tag);
                }
            }
            Event::Close(name) => {
                if let Some(at) = around.iter().rposition(|tag| tag.name == *name) {
                    around.truncate(at);
                }
            }
            Event::Text => {}
        }
    }
    if whole {
        issues.extend(document(path, events));
    }
    issues
}

fn issue(path: &str, line: usize, broken: Broken) -> Issue {
    Issue {
        subject: path.to_string(),
        weakness: broken.what.to_string(),
        title: format!("{} in `{path}`", capital(broken.what)),
        detail: broken.why,
        severity: broken.severity,
        confidence: broken.confidence,
        evidence: vec![format!("{path}:{line}")],
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// The ids that a `<label>` names.
fn labelled(events: &[Event]) -> HashSet<&str> {
    let tags = events.iter().filter_map(|event| match event {
        Event::Open(tag) if tag.name == "label" => Some(tag),
        _ => None,
    });
    tags.filter_map(|tag| tag.value("for").or_else(|| tag.value("htmlfor"))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    /// Only pictures or components: it may be an icon without words.
    Pictures,
    Words,
}

/// What is between an element and its end.
fn content(events: &[Event], index: usize) -> Content {
    let Some(Event::Open(tag)) = events.get(index) else { return Content::Nothing };
    if tag.closed {
        return Content::Nothing;
    }
    let mut depth = 1;
    let mut found = Content::Nothing;
    for event in &events[index + 1..] {
        match event {
            Event::Text => return Content::Words,
            Event::Open(inner) => {
                if inner.has("aria-label")
                    || inner.name == "title"
                    || inner.value("alt").is_some_and(|alt| !alt.is_empty())
                    || (inner.has("alt") && inner.value("alt").is_none())
                {
                    return Content::Words;
                }
                found = Content::Pictures;
                depth += usize::from(inner.name == tag.name && !inner.closed);
            }
            Event::Close(name) if *name == tag.name => {
                depth -= 1;
                if depth == 0 {
                    return found;
                }
            }
            Event::Close(_) => {}
        }
    }
    found
}

fn checks(tag: &Tag, around: &[&Tag], labels: &HashSet<&str>, content: impl Fn() -> Content) -> Vec<Broken> {
    let mut found = Vec::new();
    let named = ["aria-label", "aria-labelledby", "title"].iter().any(|name| tag.has(name)) || tag.is_open();
    let hidden = tag.value("aria-hidden") == Some("true") || tag.has("hidden");
    match tag.name.as_str() {
        "img" if !tag.has("alt") && !named && !hidden && tag.value("role") != Some("presentation") => found.push(broken(
            "image without alt", "A screen reader reads the file name. Say what it shows, or `alt=\"\"` if it only decorates.", Severity::High, 0.95,
        )),
        "input" | "select" | "textarea" if !named && !hidden && needs_label(tag, around, labels) => found.push(broken(
            "field without label", "Nobody hears what to type. Give it a `<label>` or `aria-label`; a placeholder is gone when one types.", Severity::High, 0.8,
        )),
        "button" if !named && !hidden => match content() {
            Content::Nothing => found.push(broken("button without text", "Nobody hears what it does. Give it text or `aria-label`.", Severity::High, 0.85)),
            Content::Pictures => found.push(broken("button with only an icon", "If the icon has no text of its own, nobody hears what it does: add `aria-label`.", Severity::Medium, 0.55)),
            Content::Words => {}
        },
        "a" if !named && !hidden && tag.has("href") && content() == Content::Nothing => {
            found.push(broken("link without text", "Nobody hears where it leads.", Severity::High, 0.85));
        }
        "html" if !tag.has("lang") && !tag.is_open() => {
            found.push(broken("page without language", "A screen reader cannot know how to pronounce it: `<html lang=\"en\">`.", Severity::Medium, 0.95));
        }
        "iframe" if !named && !hidden => found.push(broken("frame without title", "Nobody hears what is in it.", Severity::Medium, 0.85)),
        "meta" if tag.value("content").is_some_and(|text| text.replace(' ', "").contains("user-scalable=no")) => {
            found.push(broken("page that cannot be enlarged", "People who see badly need to.", Severity::Medium, 0.95));
        }
        _ => {}
    }
    found.extend(general(tag));
    found
}

fn broken(what: &'static str, why: &str, severity: Severity, confidence: f64) -> Broken {
    Broken { what, why: why.into(), severity, confidence }
}

fn needs_label(tag: &Tag, around: &[&Tag], labels: &HashSet<&str>) -> bool {
    let kind = tag.value("type").unwrap_or("text");
    let quiet = tag.name == "input" && ["hidden", "submit", "button", "reset", "image"].contains(&kind);
    let inside =
        around.iter().any(|tag| tag.name.eq_ignore_ascii_case("label") || tag.name.ends_with("Label"));
    // An id that is calculated may well have its label.
    let by_id = tag.has("id") && tag.value("id").is_none_or(|id| labels.contains(id) || id.contains('{'));
    !quiet && !inside && !by_id
}

/// What holds for every element.
fn general(tag: &Tag) -> Vec<Broken> {
    let mut found = Vec::new();
    let order = tag.value("tabindex").and_then(|text| text.parse::<i32>().ok());
    if order.is_some_and(|order| order > 0) {
        found.push(broken(
            "positive tabindex",
            "It jumps ahead of everything else on the page. Put the elements in the right order instead.",
            Severity::Medium,
            0.95,
        ));
    }
    let clicks = ["onclick", "@click", "v-on:click", "on:click", "(click)"].iter().any(|name| {
        tag.attributes.iter().any(|(known, _)| known == name || known.starts_with(&format!("{name}.")))
    });
    let plain = tag.name.starts_with(char::is_lowercase)
        && !tag.name.contains(['-', '.'])
        && !INTERACTIVE.contains(&tag.name.as_str());
    let usable =
        tag.has("role") || tag.has("tabindex") || tag.has("onkeydown") || tag.has("onkeyup") || tag.is_open();
    if clicks && plain && !usable {
        let why = format!(
            "A `<{}>` cannot be reached with the keyboard. Use a `<button>`, or give it a role, a tabindex and keys.",
            tag.name
        );
        found.push(Broken {
            what: "click on an element that is no control",
            why,
            severity: Severity::High,
            confidence: 0.8,
        });
    }
    for (name, _) in &tag.attributes {
        if let Some(aria) =
            name.strip_prefix("aria-").filter(|aria| !ARIA.contains(aria) && !aria.contains('{'))
        {
            let why = format!("There is no `aria-{aria}`: it does nothing.");
            found.push(Broken {
                what: "unknown aria attribute",
                why,
                severity: Severity::Medium,
                confidence: 0.9,
            });
        }
    }
    found
}

fn document(path: &str, events: &[Event]) -> Option<Issue> {
    let tags = || {
        events.iter().filter_map(|event| match event {
            Event::Open(tag) => Some(tag),
            _ => None,
        })
    };
    let html = tags().find(|tag| tag.name == "html")?;
    let titled = tags().any(|tag| tag.name == "title");
    (!titled).then(|| {
        issue(
            path,
            html.line,
            broken(
                "page without title",
                "It is the first thing that is read, and the name of the tab.",
                Severity::Medium,
                0.9,
            ),
        )
    })
}
