//! An answer that comes in pieces: a secret may be split over several of them.

use super::unit::is_mark;
use super::{Found, MASK, SHORTEST, SHORTEST_CUT, Secrets};

/// A piece may end with this many characters of a secret: most words do that end like a secret begins, and nothing is
/// held back for them. If the secret goes on, the rest of it is masked.
const SHOWN: usize = 3;
/// What is held back is never longer. Only a secret that is itself long, or escaped over and over, gets there.
const MAX_HELD: usize = 4_096;

/// What a text is, and with it what its end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A piece of an answer: more may follow.
    Piece,
    /// The end of a block, or a text that is whole.
    Last,
    /// An error, which may have been cut.
    Error,
}

/// A block of an answer: its index and its kind, whatever the numbers mean.
type Block = (u32, u8);

/// The ends of the blocks of an answer that may be the beginning of a secret.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Each with how much of it was passed on.
    tails: Vec<(Block, String, usize)>,
    /// The last byte that was passed on, and its block. It may begin a secret: most often the next one shows that it does
    /// not.
    last: (Block, u8),
}

impl Pieces {
    /// Takes a piece of a block, and leaves of it what may be passed on: usually the very piece, and perhaps nothing.
    #[inline]
    pub fn piece(&mut self, secrets: &Secrets, block: Block, piece: &mut String) {
        let bytes = piece.as_bytes();
        let Some(&last) = bytes.last() else { return };
        let before = if self.last.0 == block { self.last.1 } else { 0 };
        let is_done = self.last.0 == block && self.tails.is_empty() && !is_mark(last);
        if is_done && !secrets.may_begin(before, bytes) {
            self.last.1 = last;
        } else {
            self.look(secrets, block, piece);
        }
    }

    fn look(&mut self, secrets: &Secrets, block: Block, piece: &mut String) {
        let (of, last) = std::mem::replace(&mut self.last, (block, 0));
        if secrets.begins(last) {
            self.tails.push((of, char::from(last).into(), 1));
        }
        *piece = self.advance(secrets, block, std::mem::take(piece), Mode::Piece);
    }

    /// Returns what was held back of a block that ends.
    pub fn end(&mut self, secrets: &Secrets, block: Block) -> String {
        if self.last.0 == block {
            self.last.1 = 0;
        }
        if self.tails.is_empty() {
            String::new()
        } else {
            self.advance(secrets, block, String::new(), Mode::Last)
        }
    }

    /// Returns a block of which something may be held back.
    pub fn open(&self) -> Option<Block> {
        self.tails.first().map(|(block, ..)| *block)
    }

    /// Forgets what was held back: the answer begins again.
    pub fn clear(&mut self) {
        self.tails.clear();
        self.last.1 = 0;
    }

    fn advance(&mut self, secrets: &Secrets, block: Block, piece: String, mode: Mode) -> String {
        let known = self.tails.iter().position(|(known, ..)| *known == block);
        let (text, shown) = match known.map(|at| self.tails.swap_remove(at)) {
            Some((_, mut tail, shown)) => {
                tail.push_str(&piece);
                (tail, shown)
            }
            None => (piece, 0),
        };
        let (passed, kept) = secrets.pass(&text, shown, mode);
        if let Some((start, shown)) = kept {
            self.tails.push((block, text.get(start..).unwrap_or_default().to_owned(), shown));
        }
        match passed {
            Some(passed) => passed,
            None if shown == 0 => text,
            None => text.get(shown..).unwrap_or_default().to_owned(),
        }
    }
}

impl Secrets {
    /// Masks a text of which the beginning was passed on before. Returns what may be passed on now (`None`: the whole
    /// rest, as it is), and, of a piece, from where it is kept and how much of that was passed on.
    pub(super) fn pass(
        &self,
        text: &str,
        shown: usize,
        mode: Mode,
    ) -> (Option<String>, Option<(usize, usize)>) {
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let (mut passed, mut kept) = (None::<String>, None);
        // Up to where the text is passed on or masked, and from where a secret is looked for.
        let (mut done, mut from) = (shown, 0);
        while let Some(start) = self.next(text.as_bytes(), from) {
            let mut held = false;
            let end = match self.find(text.as_bytes(), start, mode) {
                Found::Whole(end) => end,
                // Of an escape nothing is shown before it is whole: the mask must not come to stand in one.
                Found::Part(length, to) if mode == Mode::Piece && length <= SHOWN => {
                    passed.get_or_insert_default().push_str(part(done, to));
                    kept = Some((start, to.max(done) - start));
                    done = text.len();
                    break;
                }
                Found::Part(..) if mode == Mode::Piece => {
                    held = text.len() - start <= MAX_HELD;
                    text.len()
                }
                Found::Part(length, _)
                    if length >= if mode == Mode::Last { SHORTEST } else { SHORTEST_CUT } =>
                {
                    text.len()
                }
                _ => {
                    from = start + self.skip(text.as_bytes().get(start..).unwrap_or_default());
                    continue;
                }
            };
            let passed = passed.get_or_insert_default();
            passed.push_str(part(done, start));
            if held {
                kept = Some((start, done.saturating_sub(start)));
            } else {
                passed.push_str(MASK);
            }
            (done, from) = (end, end);
        }
        if let Some(passed) = &mut passed {
            passed.push_str(part(done, text.len()));
        }
        (passed, kept)
    }
}
