//! The secrets of a model call, and how a text is kept free of them.
//!
//! A secret is the key, a header that says who is calling, and what the address holds of a password or of a key in its
//! query. Servers repeat what they were sent, as it is or in another form, so it is recognised in every form that is
//! common: in another case, escaped as in JSON, in an address or in HTML (also several times over), and in base64,
//! wherever it stands in the encoded text.

mod base64;
mod pieces;
mod sources;
mod unit;

use pieces::Mode;
pub use pieces::Pieces;
use unit::{ESCAPES, LONGEST, Unit, escaped, folded, is_mark, unfolded, unit};

/// Stands in place of a secret.
pub const MASK: &str = "[key]";

/// Anything shorter is not a secret but a word, such as `none` or `ollama`, and may be part of other words.
const SHORTEST: usize = 8;
/// A word of letters alone is not looked for in answers if it is shorter than this: somebody may have given the key
/// `placeholder` to a server that needs none.
const LONGEST_WORD: usize = 20;
/// From how many characters on the beginning of a secret counts as one, where a text was cut.
const SHORTEST_CUT: usize = 4;
/// Stands where one of the engine's own limits has cut a text.
const CUT: &[u8] = "…".as_bytes();

/// The secrets of a model call; see the module.
#[derive(Debug)]
pub struct Secrets {
    /// What is looked for, folded, and whether it is in answers too. In errors everything is.
    needles: Vec<(Vec<u8>, bool)>,
    /// Which forms may begin with a byte, and, in the higher half, which may have it second: a bit for each form, or for
    /// each fifth. The last three bits are those of escapes: texts are full of what may begin one, and most often it does
    /// not.
    pairs: [u16; 256],
}

/// How many bits there are for forms.
const FORMS: usize = 5;
/// The bit of the escape in which any byte may stand for itself.
const BACKSLASH: u16 = 1 << (FORMS + 1);
/// How far above the bit of what begins that of what stands second is.
const SECOND: usize = 8;

impl Default for Secrets {
    fn default() -> Self {
        Secrets { needles: Vec::new(), pairs: [0; 256] }
    }
}

/// What stands at a place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A whole secret, which ends here.
    Whole(usize),
    /// The beginning of a secret, of this many characters, with which the text ends. The second number is where they
    /// end: behind them stands at most the beginning of an escape.
    Part(usize, usize),
    Nothing,
}

impl Secrets {
    /// The key of a call alone.
    pub fn of_key(key: Option<&str>) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(key.unwrap_or_default());
        secrets
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// Whether they are those of another call.
    pub fn is_same(&self, other: &Secrets) -> bool {
        self.needles == other.needles
    }

    fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        let is_word = secret.len() < LONGEST_WORD && secret.bytes().all(|byte| byte.is_ascii_alphabetic());
        let forms = [
            secret.to_owned(),
            base64::encode(secret, 0),
            base64::encode(secret, 1),
            base64::encode(secret, 2),
        ];
        for form in forms {
            let form: Vec<u8> = form.bytes().map(folded).collect();
            if self.needles.iter().any(|(known, _)| *known == form) {
                return;
            }
            let bit = 1 << (self.needles.len() % FORMS);
            if self.needles.is_empty() {
                self.note_escapes();
            }
            ESCAPES.iter().for_each(|(mark, _)| note(&mut self.pairs, *mark, bit << SECOND));
            let first = form.first().copied().unwrap_or_default();
            unfolded(first).iter().for_each(|byte| note(&mut self.pairs, *byte, BACKSLASH << SECOND));
            for (bit, byte) in [bit, bit << SECOND].into_iter().zip(&form) {
                unfolded(*byte).iter().for_each(|byte| note(&mut self.pairs, *byte, bit));
            }
            self.needles.push((form, !is_word));
        }
    }

    fn note_escapes(&mut self) {
        for (number, (mark, seconds)) in ESCAPES.iter().enumerate() {
            let bit = 1 << (FORMS + number);
            note(&mut self.pairs, *mark, bit);
            seconds.iter().for_each(|second| note(&mut self.pairs, *second, bit << SECOND));
        }
    }

    /// Returns where a secret may next begin, judging by two bytes, or by the last one.
    fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let may_begin = |at: usize| match rest.get(at..)? {
            [first, second, ..] => self.is_pair(*first, *second).then_some(from + at),
            [last] => self.begins(*last).then_some(from + at),
            [] => None,
        };
        (0..rest.len()).find_map(may_begin)
    }

    /// Whether a secret may begin in a text, or with the byte before it, judging by two bytes in a row. It is asked about
    /// every piece of an answer, so nothing in the loop depends on what a byte is.
    #[inline]
    fn may_begin(&self, before: u8, text: &[u8]) -> bool {
        let (mut last, mut pairs) = (self.of(before), 0);
        for byte in text {
            let bits = self.of(*byte);
            pairs |= last & bits >> SECOND;
            last = bits;
        }
        pairs != 0
    }

    #[inline]
    fn of(&self, byte: u8) -> u16 {
        self.pairs.get(usize::from(byte)).copied().unwrap_or_default()
    }

    fn begins(&self, byte: u8) -> bool {
        self.of(byte) & 0xff != 0
    }

    fn is_pair(&self, first: u8, second: u8) -> bool {
        self.of(first) & self.of(second) >> SECOND != 0
    }

    /// Returns an error text with its secrets masked; `None` if it has none. The text may have been cut: the beginning
    /// of a secret at its end counts too, and before the mark of a cut.
    pub fn masked(&self, text: &str) -> Option<String> {
        self.pass(text, 0, Mode::Error).0
    }

    /// Masks the secrets of an error text.
    pub fn mask(&self, text: &mut String) {
        if let Some(masked) = self.masked(text) {
            *text = masked;
        }
    }

    /// Masks the secrets of a text that is part of an answer and whole.
    pub fn mask_whole(&self, text: &mut String) {
        if let (Some(masked), _) = self.pass(text, 0, Mode::Last) {
            *text = masked;
        }
    }

    /// Whether what stands at a place, once its escapes are undone, may begin a secret: texts of nothing but escapes must
    /// not cost a comparison with every secret at every place.
    fn may_begin_at(&self, text: &[u8]) -> bool {
        let Some((&first, _)) = text.split_first() else { return true };
        let (mut code, mut at) = (first, 1);
        while self.of(code) & ((1 << FORMS) - 1) == 0 {
            if !is_mark(code) || at >= LONGEST {
                return false;
            }
            match escaped(code, text.get(at..).unwrap_or_default()) {
                Ok((undone, length)) => (code, at) = (undone, at + length),
                Err(is_cut) => return is_cut,
            }
        }
        true
    }

    /// How far to go on from a place where no secret begins: of many backslashes, only the last may escape anything.
    fn skip(&self, text: &[u8]) -> usize {
        let run = text.iter().take_while(|byte| **byte == b'\\').count();
        if self.of(b'\\') & ((1 << FORMS) - 1) == 0 { run.saturating_sub(LONGEST).max(1) } else { 1 }
    }

    /// Compares a place of a text with all secrets.
    fn find(&self, text: &[u8], start: usize, mode: Mode) -> Found {
        if !self.may_begin_at(text.get(start..).unwrap_or_default()) {
            return Found::Nothing;
        }
        // Only error texts are cut by limits.
        let shortest = if mode == Mode::Error { SHORTEST_CUT } else { usize::MAX };
        let mut found = Found::Nothing;
        for (needle, in_answers) in &self.needles {
            if mode != Mode::Error && !in_answers {
                continue;
            }
            let one = compare(needle, 0, text, start, shortest);
            found = match one {
                // What is masked tells whoever wrote it that it is right: it must not be found letter by letter.
                Found::Part(length, _) if mode == Mode::Last && 2 * length < needle.len() => found,
                one => found.or(one, mode == Mode::Piece),
            };
        }
        found
    }

    /// Masks the secrets of what a function says that was to give the key and failed, and every word in it that looks
    /// like one: the key that it speaks of is not known.
    pub fn mask_words(&self, text: &str) -> String {
        let text = self.masked(text).unwrap_or_else(|| text.to_owned());
        let mut masked = String::new();
        let is_part =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'=' | b'%');
        for word in text.as_bytes().chunk_by(|a, b| is_part(*a) == is_part(*b)) {
            let has = |is: fn(&u8) -> bool| word.iter().any(is);
            let is_mixed = word.len() > SHORTEST && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
            let is_secret = is_mixed || (word.len() >= SHORTEST && word.starts_with(b"sk-"));
            masked.push_str(if is_secret { MASK } else { str::from_utf8(word).unwrap_or_default() });
        }
        masked
    }
}

/// Adds a bit for a byte. Secrets are added for every model call, so only the few places that a form concerns are touched.
fn note(table: &mut [u16; 256], byte: u8, bit: u16) {
    if let Some(bits) = table.get_mut(usize::from(byte)) {
        *bits |= bit;
    }
}

impl Found {
    /// Returns the better of two, where a longer secret may still come, or where it may not.
    fn or(self, other: Found, may_come: bool) -> Found {
        match (self, other) {
            (known, Found::Nothing) | (Found::Nothing, known) => known,
            (Found::Whole(a), Found::Whole(b)) => Found::Whole(a.max(b)),
            (Found::Part(a, to), Found::Part(b, end)) => Found::Part(a.max(b), to.min(end)),
            (whole @ Found::Whole(_), part) | (part, whole) => {
                if may_come {
                    part
                } else {
                    whole
                }
            }
        }
    }
}

/// Compares a secret with a text, from a character of the secret on. From `shortest` characters on, what stands before
/// the mark of a cut is one.
fn compare(needle: &[u8], from: usize, text: &[u8], start: usize, shortest: usize) -> Found {
    let mut at = start;
    for (matched, wanted) in needle.iter().enumerate().skip(from) {
        let rest = text.get(at..).unwrap_or_default();
        if is_mark(*wanted) && matched > 0 {
            let ways = (0..4).map(|other| match unit(rest, *wanted, other) {
                Unit::Fits(length) => compare(needle, matched + 1, text, at + length, shortest),
                other => end(other, rest, at, matched, matched >= shortest),
            });
            return ways.fold(Found::Nothing, |found, way| found.or(way, false));
        }
        match unit(rest, *wanted, 0) {
            Unit::Fits(length) => at += length,
            other => return end(other, rest, at, matched, matched >= shortest),
        }
    }
    Found::Whole(at)
}

/// What is found where the text stops to match.
fn end(unit: Unit, rest: &[u8], at: usize, matched: usize, may_be_cut: bool) -> Found {
    match unit {
        Unit::Cut => Found::Part(matched, at),
        _ if !may_be_cut => Found::Nothing,
        _ => {
            // An escape may have been cut too.
            let escape = if rest.first().is_some_and(|byte| is_mark(*byte)) { LONGEST } else { 1 };
            let cut = rest.windows(CUT.len()).take(escape).position(|part| part == CUT);
            cut.map_or(Found::Nothing, |cut| Found::Whole(at + cut))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever looks for a secret looks at two bytes first: nothing may begin where these say that nothing does.
    #[test]
    fn what_two_bytes_rule_out_begins_no_secret() {
        let behind = [
            "",
            "7",
            "73k",
            "0073k",
            "x73;k",
            "15;k",
            "mp;#115;k",
            "5c73k",
            "k-Ab3dEf6hIj9",
            "%73k",
            "\\u0073k",
        ];
        for key in ["sk-Ab3dEf6hIj9k", "%Ab3dEf6hIj9k", "\\Ab3dEf6hIj9k", "&Ab3dEf6hIj9k"] {
            let secrets = Secrets::of_key(Some(key));
            let mut ruled_out = 0;
            let pairs =
                b"%\\&skcnzSC7 x-".iter().flat_map(|first| (0..=u8::MAX).map(move |second| (*first, second)));
            for (first, second) in pairs {
                if secrets.is_pair(first, second) {
                    continue;
                }
                ruled_out += 1;
                for (behind, mode) in
                    behind.iter().flat_map(|behind| [(behind, Mode::Piece), (behind, Mode::Error)])
                {
                    let text = [&[first, second], behind.as_bytes()].concat();
                    let found = secrets.find(&text, 0, mode);
                    // What might be an entity of HTML if it went on is none of those that are known.
                    assert!(
                        matches!(found, Found::Nothing | Found::Part(0, _)),
                        "{key}: {text:?} is {found:?}"
                    );
                }
            }
            assert!(ruled_out > 3_200, "{key}: {ruled_out}");
        }
    }

    /// A server may send nothing but escapes: every one of them might be the beginning of a secret.
    #[test]
    fn a_text_of_escapes_costs_little_more_than_any_other() {
        let secrets = Secrets::of_key(Some("no-real-key-Ab3dEf6hIj9kLm2n"));
        let time = |unit: &str| {
            let text = unit.repeat(200_000 / unit.len());
            let once = || {
                let begun = std::time::Instant::now();
                assert_eq!(secrets.masked(&text), None);
                begun.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap_or_default()
        };
        let plain = time("a");
        for unit in ["\\", "%25", "&amp;"] {
            assert!(
                time(unit) < plain * 30 + std::time::Duration::from_millis(20),
                "{unit}: {:?}",
                time(unit)
            );
        }
    }

    #[test]
    fn of_a_key_that_ends_a_text_less_than_the_half_is_no_answer_to_a_guess() {
        let key = "no-real-key-Ab3dEf6hIj9kLm2n";
        let secrets = Secrets::of_key(Some(key));
        for length in 0..=key.len() {
            let beginning: String = key.chars().take(length).collect();
            let mut text = format!("x {beginning}");
            secrets.mask_whole(&mut text);
            let shown = if 2 * length < key.len() { beginning.as_str() } else { MASK };
            assert_eq!(text, format!("x {shown}"));
        }
    }
}
