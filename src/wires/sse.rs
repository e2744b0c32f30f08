//! Server-sent events: a push parser over bytes that may be split anywhere.
//!
//! Written here because the available crates lose the last frame of a body that ends without a blank line,
//! and drop the text outside the frames, where some servers put an error.

use crate::data::room::grow;
use crate::data::text::{ONES, first_of, lossy};

/// One event of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The name in its `event:` line; empty if it had none.
    pub event: &'a str,
    /// Its `data:` lines, joined by `\n`.
    pub data: &'a str,
}

/// The error of a line, or of an event, that is longer than allowed, or than there is memory for. Holds the limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// Turns bytes into [`Frame`]s. A one-line event that lies completely in the bytes of one call is passed on
/// without a copy; only what is split is buffered.
///
/// Lines end in `\n`, `\r\n` or `\r`. A byte order mark, whitespace before the first line, comments and the
/// fields `id` and `retry` are skipped. What is not a line of an event stream is kept for
/// [`SseParser::stray`].
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The data lines of an unfinished event that had to be copied.
    data: Option<Vec<u8>>,
    event: String,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    at_start: bool,
    stray: Vec<u8>,
}

/// Bytes that a line, or the data of one event, may have.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// How many bytes are kept of what is not a line of an event stream.
const MAX_STRAY: usize = 1024 * 1024;

/// Ends the last line and the last event of a body, whether or not they have ended.
pub(super) const END: &[u8] = b"\n\n";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

enum SseLine<'a> {
    Blank,
    Data(&'a [u8]),
    Event(&'a [u8]),
    PassedOver,
    Stray(&'a [u8]),
}

impl Default for SseParser {
    fn default() -> Self {
        SseParser::new(MAX_LINE)
    }
}

impl SseParser {
    /// Creates a parser that refuses lines, and data of one event, of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        SseParser {
            limit,
            line: Vec::new(),
            data: None,
            event: String::new(),
            after_cr: false,
            at_start: true,
            stray: Vec::new(),
        }
    }

    /// Takes the next bytes and calls `each` with every complete event.
    ///
    /// # Errors
    /// If a line or an event is longer than the limit. The parser must not be used afterwards.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        // The data of an event that so far is one line in `bytes`.
        let mut in_place: Option<&[u8]> = None;
        if self.at_start && self.line.is_empty() && rest.first().is_some_and(u8::is_ascii_graphic) {
            // There is no byte order mark and no whitespace to strip.
            self.at_start = false;
        }
        while let Some((line, after)) = self.next_line(rest) {
            rest = after;
            if self.at_start || !self.line.is_empty() {
                let mut whole = self.complete_line(line)?;
                match SseLine::read(&whole) {
                    // The line may be long: it is not copied.
                    SseLine::Data(data) if self.data.is_none() => {
                        whole.drain(..whole.len() - data.len());
                        self.data = Some(whole);
                    }
                    _ => drop(self.take_line(&whole, None, &mut each)?),
                }
            } else {
                in_place = self.take_line(line, in_place, &mut each)?;
            }
        }
        self.keep_data(in_place)?;
        self.grow_line(rest)
    }

    /// The body has ended: passes on the last event, whether or not a blank line closed it.
    ///
    /// # Errors
    /// As [`SseParser::feed`].
    pub fn finish(&mut self, each: impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        self.feed(END, each)
    }

    /// Returns the text outside the events, such as a bare JSON document or an HTML page, up to one mebibyte.
    pub fn stray(&self) -> String {
        lossy(&self.stray).trim().to_owned()
    }

    /// Returns the first line of `bytes` and what follows it; `None` if no line ends in them.
    fn next_line<'a>(&mut self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (line, tail) = bytes.split_at_checked(line_end(bytes)?)?;
        let (end, after) = tail.split_first()?;
        if *end == b'\n' {
            return Some((line, after));
        }
        self.after_cr = after.is_empty();
        Some((line, after.strip_prefix(b"\n").unwrap_or(after)))
    }

    /// Returns the line that ends with `tail`, with its buffered beginning. Strips the byte order mark and
    /// leading whitespace from the first line.
    fn complete_line(&mut self, tail: &[u8]) -> Result<Vec<u8>, TooLong> {
        self.grow_line(tail)?;
        let mut line = std::mem::take(&mut self.line);
        if self.at_start {
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii_start();
            self.at_start = text.is_empty();
            line.drain(..line.len() - text.len());
        }
        Ok(line)
    }

    fn grow_line(&mut self, more: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + more.len() > self.limit {
            return Err(TooLong(self.limit));
        }
        if !grow(&mut self.line, more.len()) {
            return Err(TooLong(self.line.len()));
        }
        self.line.extend_from_slice(more);
        Ok(())
    }

    /// Takes a whole line. Returns the data of the unfinished event, if all of it is in `line` or `in_place`.
    fn take_line<'a>(
        &mut self,
        line: &'a [u8],
        in_place: Option<&'a [u8]>,
        each: &mut impl FnMut(Frame<'_>),
    ) -> Result<Option<&'a [u8]>, TooLong> {
        match SseLine::read(line) {
            SseLine::Data(data) if in_place.is_none() && self.data.is_none() => return Ok(Some(data)),
            SseLine::Data(data) => {
                self.keep_data(in_place)?;
                self.keep_data(Some(data))?;
                return Ok(None);
            }
            SseLine::Blank => {
                self.emit_frame(in_place, each);
                return Ok(None);
            }
            SseLine::Event(name) => self.event = lossy(name),
            SseLine::PassedOver => {}
            SseLine::Stray(text) => self.keep_stray(text),
        }
        Ok(in_place)
    }

    fn keep_data(&mut self, data: Option<&[u8]>) -> Result<(), TooLong> {
        let Some(data) = data else {
            return Ok(());
        };
        let Some(kept) = &mut self.data else {
            self.data = Some(data.to_vec());
            return Ok(());
        };
        if kept.len() + data.len() > self.limit {
            return Err(TooLong(self.limit));
        }
        if !grow(kept, data.len() + 1) {
            return Err(TooLong(kept.len()));
        }
        kept.push(b'\n');
        kept.extend_from_slice(data);
        Ok(())
    }

    fn emit_frame(&mut self, in_place: Option<&[u8]>, each: &mut impl FnMut(Frame<'_>)) {
        let kept = self.data.take();
        if let Some(bytes) = in_place.or(kept.as_deref()) {
            match std::str::from_utf8(bytes) {
                Ok(data) => each(Frame { event: &self.event, data }),
                Err(_) => each(Frame { event: &self.event, data: &lossy(bytes) }),
            }
        }
        self.event.clear();
    }

    fn keep_stray(&mut self, line: &[u8]) {
        if self.stray.len() + line.len() < MAX_STRAY {
            self.stray.extend_from_slice(line);
            self.stray.push(b'\n');
        }
    }
}

impl<'a> SseLine<'a> {
    fn read(line: &'a [u8]) -> SseLine<'a> {
        if let Some(value) = line.strip_prefix(b"data:") {
            return SseLine::Data(without_blank(value));
        }
        if line.is_empty() {
            return SseLine::Blank;
        }
        if line.starts_with(b":") {
            return SseLine::PassedOver;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at_checked(colon).unwrap_or((line, b""));
        match name {
            b"data" => SseLine::Data(b""),
            b"event" => SseLine::Event(without_blank(value.strip_prefix(b":").unwrap_or(value))),
            b"id" | b"retry" => SseLine::PassedOver,
            _ if is_cut_field(line) => SseLine::PassedOver,
            _ => SseLine::Stray(line),
        }
    }
}

/// Whether a connection that broke inside the name of a field leaves this. It must not be taken for text in place
/// of a stream, after which nobody would ask again.
fn is_cut_field(line: &[u8]) -> bool {
    [&b"data"[..], b"event", b"retry"].iter().any(|name| name.starts_with(line))
}

fn without_blank(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

/// Returns the position of the first `\n` or `\r`.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        // Marks every byte below 14: few of them are not line ends.
        let at = first_of(rest, |word| word.wrapping_sub(ONES * 0x0e) & !word);
        match rest.get(at)? {
            b'\n' | b'\r' => return Some(from + at),
            _ => from += at + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a body given in pieces, as `event|data`.
    fn events(body: &[u8], piece: usize) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut seen = Vec::new();
        for bytes in body.chunks(piece) {
            parser.feed(bytes, |f| seen.push(format!("{}|{}", f.event, f.data))).unwrap();
        }
        parser.finish(|f| seen.push(format!("{}|{}", f.event, f.data))).unwrap();
        seen
    }

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_events() {
        let bodies: [(&[u8], &[&str]); 10] = [
            (b"data: a\n\ndata: b\n\n", &["|a", "|b"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", &["|a", "|b"]),
            (b"data: a\r\rdata: b\r\r", &["|a", "|b"]),
            (b"data: a\r\n\ndata: b\n\r\n", &["|a", "|b"]),
            (b"\xef\xbb\xbfdata:a\ndata:  b\ndata\n\n", &["|a\n b\n"]),
            (b"event: error\ndata: x\n\ndata: y\n\n", &["error|x", "|y"]),
            (b": hello\n\nid: 3\nretry: 5\ndata: a\n: more\ndata: b\n\n", &["|a\nb"]),
            ("data: \u{e9}\u{1f600}\n\n".as_bytes(), &["|\u{e9}\u{1f600}"]),
            (b"data: last without a blank line", &["|last without a blank line"]),
            (b" data: after a blank\n\n", &["|after a blank"]),
        ];
        for (body, wanted) in bodies {
            for piece in 1..=body.len() {
                assert_eq!(events(body, piece), wanted, "{} by {piece}", String::from_utf8_lossy(body));
            }
        }
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_is_forgotten() {
        assert_eq!(events(b"event: ping\n\ndata: a\n\n", 5), ["|a"]);
    }

    #[test]
    fn bytes_that_are_no_utf8_do_not_lose_the_event() {
        assert_eq!(events(b"data: a\xffb\n\n", 3), ["|a\u{fffd}b"]);
    }

    #[test]
    fn text_beside_the_events_is_kept() {
        let mut parser = SseParser::default();
        let body = b"data: a\n\n{\n  \"error\": {\"code\": 429}\n}";
        let mut count = 0;
        parser.feed(body, |_| count += 1).unwrap();
        parser.finish(|_| count += 1).unwrap();
        assert_eq!((count, parser.stray().as_str()), (1, "{\n  \"error\": {\"code\": 429}\n}"));
    }

    #[test]
    fn a_field_whose_name_was_cut_is_no_text_beside_the_events() {
        for (body, stray) in [
            ("d", ""),
            ("event: a\nda", ""),
            ("data: a\n\neven", ""),
            ("r", ""),
            ("dat:", "dat:"),
            ("date", "date"),
        ] {
            let mut parser = SseParser::default();
            parser.feed(body.as_bytes(), |_| ()).unwrap();
            parser.finish(|_| ()).unwrap();
            assert_eq!(parser.stray(), stray, "{body}");
        }
    }

    #[test]
    fn a_line_without_end_and_an_event_without_end_are_refused() {
        let mut parser = SseParser::new(100);
        let fed = (0..200).try_for_each(|_| parser.feed(b"x", |_| ()));
        assert_eq!(fed, Err(TooLong(100)));
        let mut parser = SseParser::new(100);
        let fed = (0..200).try_for_each(|_| parser.feed(b"data: x\n", |_| ()));
        assert_eq!(fed, Err(TooLong(100)));
    }

    #[test]
    fn a_line_end_is_found_at_every_place() {
        for n in 0..40 {
            for end in [b'\n', b'\r'] {
                let mut bytes = vec![b'\t'; n];
                bytes.extend([end, b'\n', b'x']);
                assert_eq!(line_end(&bytes), Some(n));
            }
        }
        assert_eq!(line_end(&[0xff; 40]), None);
    }
}
