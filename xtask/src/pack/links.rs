//! The links in pages of Markdown, which must lead somewhere from where the page lies in a package.

use crate::run::root;

/// Where a file is, seen from the page.
pub(super) enum Place {
    /// Where the link says.
    Kept,
    At(String),
    /// In the repository only.
    Elsewhere,
}

/// Returns the page with its links led: `page` is its path in the repository, `place` says of a path there where it is.
pub(super) fn led(text: &str, page: &str, place: &dyn Fn(&str) -> Place, repository: Option<&str>) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut made = String::new();
    let mut rest = text;
    while let Some(link) = next(text, text.len() - rest.len()) {
        let from = text.len() - rest.len();
        made.push_str(&text[from..link.bracket]);
        let target = &text[link.target..link.end];
        let (path, heading) = target.find('#').map_or((target, ""), |at| (&target[..at], &target[at..]));
        let path = resolved(folder, path);
        match path.as_ref().map(|path| place(path)) {
            Some(Place::At(other)) => made.push_str(&format!("]({other}{heading})")),
            Some(Place::Elsewhere) => match (repository, made.rfind('[')) {
                (Some(address), _) => {
                    let path = path.unwrap_or_default();
                    made.push_str(&format!("]({address}/tree/HEAD/{path}{heading})"));
                }
                (None, Some(open)) => drop(made.remove(open)),
                (None, None) => made.push_str(&text[link.bracket..=link.end]),
            },
            _ => made.push_str(&text[link.bracket..=link.end]),
        }
        rest = &text[link.end + 1..];
    }
    made + rest
}

/// Returns the targets of all links to files.
pub(super) fn targets(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(link) = next(text, at) {
        found.push(&text[link.target..link.end]);
        at = link.end + 1;
    }
    found
}

/// Returns a text without the addresses of its links, and without backticks.
pub(super) fn plain(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        made.push_str(before);
        if let Some(open) = made.rfind('[') {
            made.remove(open);
        }
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    (made + rest).replace('`', "")
}

struct Link {
    bracket: usize,
    target: usize,
    end: usize,
}

/// Finds the next link to a file, outside of blocks of code.
fn next(text: &str, mut at: usize) -> Option<Link> {
    loop {
        let bracket = at + text[at..].find("](")?;
        let target = bracket + 2;
        let end = target + text[target..].find(')')?;
        let inside = &text[target..end];
        let is_code = text[..bracket].lines().filter(|line| line.starts_with("```")).count() % 2 == 1;
        let is_file = !inside.is_empty()
            && !inside.starts_with('#')
            && !inside.contains(|letter: char| letter.is_whitespace() || letter == ':' || letter == '"');
        if !is_code && is_file {
            return Some(Link { bracket, target, end });
        }
        at = target;
    }
}

/// Returns the path in the repository, if a file is there: what looks like a link in code is none.
fn resolved(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    let path = parts.join("/");
    root().join(&path).exists().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Read [one\npage](tape.md#fork), [all](../www/examples).\n\n```js\na[0](../www);\n```\n[site](https://a.example) [here](#x)\n";

    #[test]
    fn a_link_out_of_the_package_leads_to_the_repository() {
        let place = |path: &str| if path.starts_with("docs/") { Place::Kept } else { Place::Elsewhere };
        let made = led(PAGE, "docs/README.md", &place, Some("https://git.example/a/b"));
        assert_eq!(
            made,
            PAGE.replace("](../www/examples)", "](https://git.example/a/b/tree/HEAD/www/examples)")
        );
        let made = led(PAGE, "docs/README.md", &place, None);
        assert_eq!(made, PAGE.replace("[all](../www/examples)", "all"));
    }

    #[test]
    fn a_text_loses_its_links_and_keeps_its_words() {
        assert_eq!(plain("a `b` [c](d) [e](f)."), "a b c e.");
        assert_eq!(targets(PAGE), ["tape.md#fork", "../www/examples"]);
    }
}
