//! What one step does and prints, followed over its attempts: for `logs` and `attach`.

use std::path::Path;

use sage_agents::activity::{Entry, Reader};
use sage_core::run::{Run, StepId};
use sage_engine::open::Engine;
use sage_engine::project::Project;

const PIECE_BYTES: u64 = 1 << 20;

/// A piece of it, in order.
#[derive(Debug)]
pub enum Piece {
    /// An agent did something. Its raw events on stdout are left out.
    Entry(Entry),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

#[derive(Debug, Default)]
pub struct StepOutput {
    attempt: u32,
    reader: Option<Reader>,
    read: [u64; 2],
    any: bool,
}

impl StepOutput {
    /// What is new; nothing if there is nothing.
    pub fn next(&mut self, engine: &Engine, run_dir: &Path, run: &Run, id: StepId) -> Vec<Piece> {
        let step = run.step(id);
        let attempt = step.attempts.max(1);
        let scratch = Project::scratch(run_dir, &step.path, attempt);
        if attempt != self.attempt {
            *self = StepOutput { attempt, any: self.any, ..StepOutput::default() };
        }
        let reader = self.reader.get_or_insert_with(|| Reader::new(&scratch));
        let mut pieces: Vec<Piece> = reader.read().into_iter().map(Piece::Entry).collect();
        let tells = reader.exists();
        for (n, name) in ["stdout.log", "stderr.log"].into_iter().enumerate() {
            if n == 0 && tells {
                continue;
            }
            let piece =
                engine.vfs.read_from(&scratch.join(name), self.read[n], PIECE_BYTES).unwrap_or_default();
            self.read[n] += piece.len() as u64;
            if !piece.is_empty() {
                pieces.push(if n == 0 { Piece::Stdout(piece) } else { Piece::Stderr(piece) });
            }
        }
        self.any |= !pieces.is_empty();
        pieces
    }

    /// Whether there was anything since the start.
    pub fn any(&self) -> bool {
        self.any
    }

    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}
