//! Who may talk to the HTTP door.
//!
//! Three things, each for another stranger: `Host` stops a web page that points a name of its own at this machine,
//! `Origin` stops any other page in a browser here, and the token stops other users of this machine.

use std::io::{self, Read};
use std::net::Ipv4Addr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::{StatusCode, Uri};

/// A secret of 256 bits, as text; never shown by accident.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    const MIN_CHARS: usize = 16;

    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// One that a person chose; none if it is too short to be a secret, or cannot stand in a header.
    pub fn chosen(text: &str) -> Option<Token> {
        let text = text.trim();
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        (text.len() >= Token::MIN_CHARS && is_plain).then(|| Token(text.to_string()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long for a wrong one as for a right one.
    fn is(&self, given: &str) -> bool {
        let pairs = self.0.bytes().zip(given.bytes());
        self.0.len() == given.len() && pairs.fold(0, |different, (a, b)| different | (a ^ b)) == 0
    }
}

/// What a request must show.
#[derive(Clone, Debug)]
pub struct Guard {
    port: u16,
    /// None: everybody who gets here may talk. Only for tests of the protocol.
    token: Option<Token>,
}

/// The status, and why in words for whoever set the client up.
pub type Refusal = (StatusCode, &'static str);

impl Guard {
    pub fn new(port: u16, token: Option<Token>) -> Guard {
        Guard { port, token }
    }

    /// Is it sent to us, and from no other page?
    pub fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default(),
            _ => return Err((StatusCode::BAD_REQUEST, "exactly one Host header is needed")),
        };
        let asked = uri.authority().map_or(host, |authority| authority.as_str());
        if !self.is_ours(host) || !self.is_ours(asked) {
            return Err((StatusCode::FORBIDDEN, "this Host is not allowed: use 127.0.0.1 with the port"));
        }
        let is_ours =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|authority| self.is_ours(authority));
        let is_foreign = |origin: &hyper::header::HeaderValue| !origin.to_str().is_ok_and(is_ours);
        if headers.get_all(ORIGIN).iter().any(is_foreign) {
            return Err((StatusCode::FORBIDDEN, "requests of other web pages are not allowed"));
        }
        Ok(())
    }

    fn is_ours(&self, authority: &str) -> bool {
        let names = [Ipv4Addr::LOCALHOST.to_string(), "localhost".into(), "[::1]".into()];
        let port = format!(":{}", self.port);
        let name = authority.strip_suffix(&port).or((self.port == 80).then_some(authority));
        name.is_some_and(|name| names.iter().any(|ours| ours.eq_ignore_ascii_case(name)))
    }

    /// A token in a URL ends up in logs and histories: it is not taken from there.
    pub fn check_query(uri: &Uri) -> Result<(), Refusal> {
        let is_token = |part: &str| part.split('=').next().is_some_and(|name| name.contains("token"));
        match uri.query().is_some_and(|query| query.split('&').any(is_token)) {
            true => {
                Err((StatusCode::BAD_REQUEST, "the token belongs in the header `Authorization: Bearer ..`"))
            }
            false => Ok(()),
        }
    }

    /// Does whoever asks know the token?
    pub fn is_known(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = given.and_then(|value| value.split_once(' '));
        bearer.is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let guard = Guard::new(7243, None);
        guard
            .check_place(&"/mcp".parse().unwrap(), &headers)
            .map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    // covers: R16
    #[test]
    fn only_this_machine_and_no_other_page() {
        for host in ["127.0.0.1:7243", "localhost:7243", "LOCALHOST:7243", "[::1]:7243"] {
            assert_eq!(place(host, None), 200, "{host}");
            assert_eq!(place(host, Some(&format!("http://{host}"))), 200, "{host}");
        }
        for host in [
            "127.0.0.1",
            "localhost",
            "evil.example:7243",
            "localhost.evil.example:7243",
            "127.0.0.1:80",
            "[::1]",
        ] {
            assert_eq!(place(host, None), 403, "{host}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "https://localhost:7243",
            "http://localhost:80",
            "http://localhost",
        ] {
            assert_eq!(place("localhost:7243", Some(origin)), 403, "{origin}");
        }
        let bare = Guard::new(1, None).check_place(&"/".parse().unwrap(), &HeaderMap::new());
        assert_eq!(bare.unwrap_err().0, StatusCode::BAD_REQUEST);
    }

    // covers: R16
    #[test]
    fn only_the_right_token_opens() {
        let token = Token::random().unwrap();
        let guard = Guard::new(1, Some(token.clone()));
        let is_known = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            guard.is_known(&headers)
        };
        assert!(is_known(&format!("Bearer {}", token.text())));
        assert!(is_known(&format!("bearer {}", token.text())));
        let (wrong, short) = ("0".repeat(token.text().len()), &token.text()[1..]);
        for value in ["", "Bearer", "Bearer ", &format!("Bearer {wrong}"), &format!("Bearer {short}")] {
            assert!(!is_known(value), "{value}");
        }
        assert!(!is_known(&format!("Basic {}", token.text())));
        assert!(!guard.is_known(&HeaderMap::new()));
        assert_ne!(token.text(), Token::random().unwrap().text());
        assert!(!format!("{token:?}").contains(token.text()));
    }

    // covers: R16
    #[test]
    fn a_token_in_the_url_is_refused() {
        let check = |uri: &str| Guard::check_query(&uri.parse().unwrap()).is_ok();
        assert!(check("/mcp") && check("/mcp?x=1"));
        assert!(!check("/mcp?token=abc") && !check("/mcp?a=b&access_token=c"));
        assert!(Token::chosen("short").is_none() && Token::chosen(&"a b".repeat(9)).is_none());
        assert_eq!(Token::chosen(" 0123456789abcdef\n").unwrap().text(), "0123456789abcdef");
    }
}
