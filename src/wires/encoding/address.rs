//! The address of a request.

use crate::data::text::{Put, split_once, without_end};

/// Splits an address into what stands before its query, without trailing slashes, and the query.
pub(crate) fn split_query(base_url: &str) -> (&str, &str) {
    let (base, query) = split_once(base_url, "?").unwrap_or((base_url, ""));
    (without_end(base, "/"), query)
}

/// Joins the parts of an address and its query.
pub(crate) fn join_query(parts: &[&str], query: &str) -> String {
    let mut url = parts.concat();
    if !query.is_empty() {
        url.put("?");
        url.put(query);
    }
    url
}
