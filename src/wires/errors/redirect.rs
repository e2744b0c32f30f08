//! A server that redirects. The request holds the prompt and the key, so nobody sends it on to where a server points.

use crate::data::text::{self, find_any};
use crate::words::error::{ErrorInfo, ErrorKind, ProviderError};

use super::details::first_characters;

/// How many characters of an address are shown.
const MAX_ADDRESS: usize = 200;

/// Whether a status tells the client to ask elsewhere.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 300..=303 | 307 | 308)
}

/// The error names where the server points, which may be the very address that the user meant.
pub(super) fn error(status: u16, location: Option<&str>) -> ErrorInfo {
    let mut message = ["the server redirects (", &text::number(status), ")"].concat();
    // Servers fill the query with what they were sent. An address with a password is none to repeat.
    let location = location.unwrap_or_default();
    let shown = location.get(..find_any(location, "?#@").unwrap_or(location.len())).unwrap_or_default();
    if !shown.is_empty() {
        message.push_str(" to ");
        message.push_str(&first_characters(shown, MAX_ADDRESS));
    }
    message.push_str(
        "; the request is not sent there, because it holds the prompt and the key: \
         if that is the right server, set the base URL to its address",
    );
    let mut info = ErrorInfo::new(ErrorKind::InvalidRequest, message);
    info.provider = Some(ProviderError { status: Some(status), ..ProviderError::default() });
    info
}
