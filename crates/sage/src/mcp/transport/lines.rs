//! Lines in and out of the process, on two threads of their own.
//!
//! Pipes, sockets, files and terminals all work that way, and none of them is switched to non-blocking, which
//! whoever shares them would notice. While this is in use, file descriptor 0 is empty and 1 is stderr: a stray
//! print cannot break into the protocol, and a child cannot eat its input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;

use tokio::sync::{mpsc, oneshot};

use super::MESSAGE_BYTES;

/// Lines that were read ahead; few, because each may be large.
const READ_AHEAD: usize = 2;
/// Messages that wait for a client that reads slowly; then whoever sends waits too.
const WRITE_BEHIND: usize = 16;
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub enum Line {
    Text(Vec<u8>),
    /// Larger than a message may be; what it was is gone.
    TooLong,
}

/// A line with its end, and who waits until it is written.
pub type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Takes stdin and stdout away from the rest of the process.
pub fn take_stdio() -> io::Result<(mpsc::Receiver<Line>, mpsc::Sender<Outgoing>)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(io::stderr()).or_else(|_| rustix::stdio::dup2_stdout(&nothing))?;
    let (sender, lines) = mpsc::channel(READ_AHEAD);
    let (outgoing, messages) = mpsc::channel(WRITE_BEHIND);
    std::thread::Builder::new().name("stdin".into()).spawn(move || read_lines(input, &sender))?;
    std::thread::Builder::new().name("stdout".into()).spawn(move || write_lines(output, messages))?;
    Ok((lines, outgoing))
}

/// Until the end of the input, or until nobody wants more.
fn read_lines(input: impl Read, lines: &mpsc::Sender<Line>) {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let limit = MESSAGE_BYTES as u64 + 1;
    loop {
        let mut line = Vec::new();
        let read = match input.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) => return eprintln!("sage mcp: cannot read any more: {error}"),
        };
        let is_whole = line.ends_with(b"\n");
        let read = if is_whole || read <= MESSAGE_BYTES {
            Line::Text(line)
        } else {
            drop(line);
            if input.skip_until(b'\n').is_err() {
                return;
            }
            Line::TooLong
        };
        if lines.blocking_send(read).is_err() {
            return;
        }
    }
}

fn write_lines(mut output: impl Write, mut messages: mpsc::Receiver<Outgoing>) {
    while let Some((line, written)) = messages.blocking_recv() {
        let result = output.write_all(&line).and_then(|()| output.flush());
        // Whoever waited may have gone.
        let _ = written.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(input: impl Read + Send + 'static) -> Vec<Line> {
        let (sender, mut lines) = mpsc::channel(READ_AHEAD);
        let reader = std::thread::spawn(move || read_lines(input, &sender));
        let mut found = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            found.push(line);
        }
        reader.join().unwrap();
        found
    }

    // covers: R16
    #[test]
    fn the_last_line_needs_no_end() {
        let found = lines_of(&b"{}\n\n[1]"[..]);
        let texts: Vec<&[u8]> = found
            .iter()
            .map(|line| match line {
                Line::Text(text) => text.as_slice(),
                Line::TooLong => b"too long",
            })
            .collect();
        assert_eq!(texts, [&b"{}\n"[..], b"\n", b"[1]"]);
    }

    // covers: R16
    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let long = io::repeat(b'x').take(MESSAGE_BYTES as u64 + 5);
        let found = lines_of(long.chain(&b"\n{}\n"[..]));
        assert!(
            matches!(&found[..], [Line::TooLong, Line::Text(text)] if text == b"{}\n"),
            "{}",
            found.len()
        );
        let just_fits = io::repeat(b' ').take(MESSAGE_BYTES as u64);
        let found = lines_of(just_fits.chain(&b"\n{}\n"[..]));
        assert!(matches!(&found[..], [Line::Text(_), Line::Text(_)]));
    }
}
