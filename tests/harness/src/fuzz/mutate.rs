//! Random changes to recorded responses: the same seed makes the same changes everywhere.

/// A small random number generator (SplitMix64).
#[derive(Clone)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0, below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    /// Returns a range of some bytes, short more often than long.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let limit = (length - start).min(1 << self.below(12));
        start..start + self.below(limit + 1)
    }
}

/// Words with a meaning to one of the readers.
const WORDS: [&[u8]; 60] = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b"data: ",
    b"data:",
    b"data",
    b"event: error\n",
    b"event: ",
    b": ping\n",
    b"\xef\xbb\xbf",
    b"data: [DONE]\n\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"\"\"",
    b"\\",
    b"\\\"",
    b"\\u",
    b"\\ud83d",
    b"\\ude00",
    b"\\ud83d\\ude00",
    b"\\u0000",
    b"\xff",
    b"\xf0\x9f",
    b"\x00",
    b"-1",
    b"1e999",
    b"0.5",
    b"18446744073709551616",
    b"99999999",
    b"\"index\":",
    b"\"index\":7,",
    b"\"id\":\"\",",
    b"\"type\":\"error\",",
    b"\"error\":{\"message\":\"x\"}",
    b"\"usage\":null,",
    b"\"finish_reason\":\"length\"",
    b"\"stop_reason\":\"max_tokens\"",
    b"\"stop_reason\":\"pause_turn\"",
    b"\"finishReason\":\"STOP\"",
    b"\"status\":\"incomplete\"",
    b"\"arguments\":\"null\"",
    b"\"partialArgs\":[{\"jsonPath\":\"$.a[0]\",\"stringValue\":\"x\"}]",
    b"\"willContinue\":true",
    b"\"thoughtSignature\":\"s\"",
    b"\"content_block\":{\"type\":\"tool_use\"}",
    b"\"output_index\":3,",
    b"\"jsonPath\":\"$.a.b[2]['c']\"",
    b"<html><title>x</title>",
    b"[[[[[[[[[[[[[[[[",
];

/// The most bytes that an input may have.
const MAX: usize = 60_000;

/// Returns a changed copy of one of the inputs.
pub(super) fn mutated(inputs: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut body = inputs[dice.below(inputs.len())].clone();
    for _ in 0..=dice.below(5) {
        mutate(&mut body, inputs, dice);
    }
    body.truncate(MAX);
    body
}

fn mutate(body: &mut Vec<u8>, inputs: &[Vec<u8>], dice: &mut Dice) {
    let length = body.len();
    match dice.below(10) {
        // Cut out a piece, or cut off the end.
        0 => drop(body.drain(dice.range(length))),
        1 => body.truncate(dice.below(length + 1)),
        // Change a bit, or some bytes.
        2 if length > 0 => body[dice.below(length)] ^= 1 << dice.below(8),
        3 => {
            for at in dice.range(length).take(8) {
                body[at] = dice.pick(&WORDS)[0];
            }
        }
        // Insert a word, or replace a piece by one.
        4 => insert(body, dice.below(length + 1), dice.pick(&WORDS)),
        5 => {
            let piece = dice.range(length);
            let word = dice.pick(&WORDS).to_vec();
            body.splice(piece, word);
        }
        // Repeat a piece, here or elsewhere.
        6 => {
            let piece = body[dice.range(length)].to_vec();
            insert(body, dice.below(length + 1), &piece);
        }
        // Insert a piece of another input.
        7 => {
            let other = &inputs[dice.below(inputs.len())];
            let piece = other[dice.range(other.len())].to_vec();
            insert(body, dice.below(length + 1), &piece);
        }
        // Reorder, drop or repeat frames.
        8 => shuffle_frames(body, dice),
        // Change a number.
        _ => {
            let digits: Vec<usize> = (0..length).filter(|at| body[*at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let at = digits[dice.below(digits.len())];
                body[at] = b'0' + u8::try_from(dice.below(10)).unwrap();
            }
        }
    }
}

fn insert(body: &mut Vec<u8>, at: usize, piece: &[u8]) {
    body.splice(at..at, piece.iter().copied());
}

fn shuffle_frames(body: &mut Vec<u8>, dice: &mut Dice) {
    let text = body.clone();
    let mut frames: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    if frames.len() < 2 {
        return;
    }
    let (one, other) = (dice.below(frames.len()), dice.below(frames.len()));
    match dice.below(3) {
        0 => frames.swap(one, other),
        1 => drop(frames.remove(one)),
        _ => frames.insert(other, frames[one]),
    }
    *body = frames.concat();
}
