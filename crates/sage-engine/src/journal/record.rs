//! One line of the journal: how it is written and how it is read back.
//!
//! Both are by hand, on bytes: the hash covers exact bytes, so a line has exactly one form, and anything else
//! is damage. Reading never trusts a byte before the hash has been checked.

use sage_core::seal::{Key, SEAL_HEX_LEN, Seal, Sealed};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Head, JournalError};
use crate::digest::{Digest, HEX_LEN};

/// The version of the line format that is written.
pub const VERSION: u64 = 1;

/// No line is longer. A longer one is neither written nor held in memory when read.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// What a line starts with, before its version.
pub(super) const START: &[u8] = b"{\"v\":";

/// What joins a record to the batch of the one before it. Not covered by the hash.
pub(super) const JOIN: u8 = b' ';

const SEAL_KEY: &[u8] = b",\"seal\":\"";
const SEAL_END: &[u8] = b"\"";
/// `,"seal":"<32 hex>"`
const SEAL_LEN: usize = SEAL_KEY.len() + SEAL_HEX_LEN + SEAL_END.len();
const SHA_KEY: &[u8] = b",\"sha\":\"";
const END: &[u8] = b"\"}";
/// `,"sha":"<64 hex>"}`
const SHA_LEN: usize = SHA_KEY.len() + HEX_LEN + END.len();
const MAX_KIND_LEN: usize = 64;

/// A verified record, borrowed from the bytes that were read.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub seq: u64,
    /// How often the journal had been opened for writing when this was written.
    pub epoch: u64,
    pub ts_ms: u64,
    pub kind: &'a str,
    /// JSON, as it was written: its hash is right, and whoever reads it reads it anyway.
    pub data: &'a str,
    pub prev: Digest,
    pub sha: Digest,
    /// Absent where the writer had no key.
    pub sealed: Option<Sealed>,
}

impl Record<'_> {
    /// The journal's head, were this its last record.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { seq: self.seq, sha: self.sha }
    }
}

/// What is wrong with a line, taken by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadLine {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("its SHA-256 does not match")]
    Sha,
    #[error("format version {0}")]
    Newer(u64),
}

/// What a new record says of itself, but for its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header<'a> {
    pub seq: u64,
    pub epoch: u64,
    pub prev: Digest,
    pub ts_ms: u64,
    pub kind: &'a str,
}

/// Appends the line, with its line break, to `out` and gives its hash. After an error, `out` holds a part.
pub(super) fn encode(
    out: &mut Vec<u8>,
    header: &Header<'_>,
    data: &impl Serialize,
    key: Option<&Key>,
) -> Result<Digest, JournalError> {
    let kind = || header.kind.to_owned();
    if !is_kind(header.kind.as_bytes()) {
        return Err(JournalError::Kind { kind: kind() });
    }
    let start = out.len();
    out.extend_from_slice(START);
    push_number(out, VERSION);
    out.extend_from_slice(b",\"seq\":");
    push_number(out, header.seq);
    out.extend_from_slice(b",\"epoch\":");
    push_number(out, header.epoch);
    out.extend_from_slice(b",\"prev\":\"");
    out.extend_from_slice(&header.prev.hex());
    out.extend_from_slice(b"\",\"ts\":");
    push_number(out, header.ts_ms);
    out.extend_from_slice(b",\"kind\":\"");
    out.extend_from_slice(header.kind.as_bytes());
    out.extend_from_slice(b"\",\"data\":");
    let data_start = out.len();
    serde_json::to_writer(&mut *out, data).map_err(|source| JournalError::Encode { kind: kind(), source })?;
    // Only raw JSON that was passed through can hold one; it would cut the record in two.
    if out[data_start..].contains(&b'\n') {
        return Err(JournalError::LineBreak { kind: kind() });
    }
    let bytes = out.len() - start + SEAL_LEN + SHA_LEN;
    if bytes > MAX_LINE_BYTES {
        return Err(JournalError::TooLong { kind: kind(), bytes });
    }
    Ok(finish(out, start, key))
}

/// Seals and hashes the line that begins at `start`, reading its bytes once.
fn finish(out: &mut Vec<u8>, start: usize, key: Option<&Key>) -> Digest {
    let mut hash = Sha256::new_with_prefix(&out[start..]);
    if let Some(key) = key {
        let seal = key.seal(&Digest(hash.clone().finalize().into()));
        let sealed = out.len();
        out.extend_from_slice(SEAL_KEY);
        out.extend_from_slice(&seal.hex());
        out.extend_from_slice(SEAL_END);
        hash.update(&out[sealed..]);
    }
    let sha = Digest(hash.finalize().into());
    out.extend_from_slice(SHA_KEY);
    out.extend_from_slice(&sha.hex());
    out.extend_from_slice(END);
    out.push(b'\n');
    sha
}

/// Decimal, straight into the buffer: `write!` costs more than the rest of the header.
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn is_kind(kind: &[u8]) -> bool {
    (1..=MAX_KIND_LEN).contains(&kind.len()) && kind.iter().all(|&byte| is_kind_byte(byte))
}

fn is_kind_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// Reads a line without its line break and its join mark. Says nothing about the chain.
pub(super) fn parse(line: &[u8]) -> Result<Record<'_>, BadLine> {
    let body_len = line.len().checked_sub(SHA_LEN).ok_or(BadLine::Malformed("too short for a record"))?;
    let (hashed, end) = line.split_at(body_len);
    let sha = end
        .strip_prefix(SHA_KEY)
        .and_then(|rest| rest.strip_suffix(END))
        .and_then(|hex| Digest::from_hex(hex).ok())
        .ok_or(BadLine::Malformed("does not end with a SHA-256"))?;
    let (body, seal) = split_seal(hashed)?;
    let mut fields = Fields(body);
    let version = fields.after(START)?.number()?;
    if version != VERSION {
        // A flipped bit may turn 1 into 3: only a line that is whole may claim to be newer.
        check_sha(body, hashed, &sha)?;
        return Err(if version > VERSION {
            BadLine::Newer(version)
        } else {
            BadLine::Malformed("unknown format version")
        });
    }
    let seq = fields.after(b",\"seq\":")?.number()?;
    let epoch = fields.after(b",\"epoch\":")?.number()?;
    let prev = fields.after(b",\"prev\":\"")?.digest()?;
    let ts_ms = fields.after(b"\",\"ts\":")?.number()?;
    let kind = fields.after(b",\"kind\":\"")?.kind()?;
    let data = fields.after(b"\",\"data\":")?.0;
    let content = check_sha(body, hashed, &sha)?;
    let data = std::str::from_utf8(data).map_err(|_| BadLine::Malformed("`data` is not UTF-8"))?;
    let sealed = seal.map(|seal| Sealed { content, seal });
    Ok(Record { seq, epoch, ts_ms, kind, data, prev, sha, sealed })
}

/// The part before the seal, and the seal. No JSON value ends like one: quotes inside of a string are escaped.
fn split_seal(hashed: &[u8]) -> Result<(&[u8], Option<Seal>), BadLine> {
    let split = hashed.len().checked_sub(SEAL_LEN).map(|at| hashed.split_at(at));
    let Some((body, hex)) =
        split.and_then(|(body, end)| Some((body, end.strip_prefix(SEAL_KEY)?.strip_suffix(SEAL_END)?)))
    else {
        return Ok((hashed, None));
    };
    let seal = Seal::from_hex(hex).ok_or(BadLine::Malformed("`seal` is not as it is written"))?;
    Ok((body, Some(seal)))
}

/// The hash of what a seal covers, once that of the whole line is right.
fn check_sha(body: &[u8], hashed: &[u8], sha: &Digest) -> Result<Digest, BadLine> {
    let mut hash = Sha256::new_with_prefix(body);
    let content = Digest(hash.clone().finalize().into());
    hash.update(&hashed[body.len()..]);
    if hash.finalize()[..] == sha.0 { Ok(content) } else { Err(BadLine::Sha) }
}

/// What is left to read of a line.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn after(&mut self, text: &[u8]) -> Result<&mut Self, BadLine> {
        self.0 = self.0.strip_prefix(text).ok_or(BadLine::Malformed("fields are not as they are written"))?;
        Ok(self)
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.0.iter().position(|&byte| !wanted(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> Result<u64, BadLine> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let canonical = digits.len() == 1 || !digits.starts_with(b"0");
        std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|_| canonical)
            .ok_or(BadLine::Malformed("a number is not as it is written"))
    }

    fn digest(&mut self) -> Result<Digest, BadLine> {
        let (hex, rest) =
            self.0.split_at_checked(HEX_LEN).ok_or(BadLine::Malformed("`prev` is cut short"))?;
        self.0 = rest;
        Digest::from_hex(hex).map_err(|_| BadLine::Malformed("`prev` is not a SHA-256"))
    }

    fn kind(&mut self) -> Result<&'a str, BadLine> {
        let kind = self.take_while(is_kind_byte);
        std::str::from_utf8(kind)
            .ok()
            .filter(|kind| is_kind(kind.as_bytes()))
            .ok_or(BadLine::Malformed("`kind` is not as it is written"))
    }
}
