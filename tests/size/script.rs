//! JavaScript, as far as it takes to find its functions: code without comments, texts and regular expressions.

/// The code with comments, texts and regular expressions blanked. What stands in `${…}` of a template stays.
pub(crate) fn without_text(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    // How many braces are open in each template's `${`, the innermost last.
    let mut templates: Vec<usize> = Vec::new();
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '}' if templates.last() == Some(&0) => {
                templates.pop();
                template_length(&rest[1..], &mut templates) + 1
            }
            '`' => template_length(&rest[1..], &mut templates) + 1,
            _ => text_length(rest, &code),
        };
        if length == 0 {
            match (letter, templates.last_mut()) {
                ('{', Some(open)) => *open += 1,
                ('}', Some(open)) => *open -= 1,
                _ => {}
            }
            code.push(letter);
            rest = &rest[letter.len_utf8()..];
        } else {
            code.extend(rest[..length].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    code
}

/// The length of the rest of a template, up to its end or including the next `${`.
fn template_length(rest: &str, templates: &mut Vec<usize>) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '`' => return at + 1,
            '$' if rest[at..].starts_with("${") => {
                templates.push(0);
                return at + 2;
            }
            _ => {}
        }
    }
    rest.len()
}

/// The length of the comment, text or regular expression at the start, or 0 if there is none.
fn text_length(rest: &str, before: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |at| at + 2);
    }
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => 1 + end_of(&rest[1..], quote),
        Some('/') if may_begin_expression(before) => 1 + end_of(&rest[1..], '/'),
        _ => 0,
    }
}

/// Where a text or a regular expression ends; a slash in brackets ends none.
fn end_of(text: &str, quote: char) -> usize {
    let (mut escaped, mut in_class) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = quote == '/',
            ']' => in_class = false,
            _ if letter == quote && !in_class => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether a slash after this code begins a regular expression. After a value it divides.
fn may_begin_expression(before: &str) -> bool {
    let before = before.trim_end();
    let word = before.rfind(|letter: char| !is_of_word(letter)).map_or(before, |at| {
        let after = at + before[at..].chars().next().map_or(0, char::len_utf8);
        &before[after..]
    });
    match word {
        "" => !before.ends_with([')', ']']),
        "return" | "typeof" | "case" | "in" | "of" | "await" | "yield" | "void" => true,
        _ => false,
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#')
}

/// The functions and methods with a body in braces: their names, where they begin, and where their body begins.
pub(crate) fn functions(code: &str) -> Vec<(String, usize, usize)> {
    code.match_indices('{').filter_map(|(at, _)| function_before(code, at)).collect()
}

/// The function whose body begins here, if the brace is that of a body.
fn function_before(code: &str, body: usize) -> Option<(String, usize, usize)> {
    let before = code[..body].trim_end();
    let arrow = before.strip_suffix("=>");
    let head = arrow.unwrap_or(before).trim_end();
    let start = match head.ends_with(')') {
        true => opening(head)?,
        false => head.len() - last_word(head).len(),
    };
    let name = last_word(code[..start].trim_end());
    match (arrow, name) {
        (Some(_), _) => Some((assigned(&code[..start]), start, body)),
        (None, _) if !head.ends_with(')') => None,
        (None, "if" | "for" | "while" | "switch" | "catch" | "with" | "await") => None,
        (None, "") => None,
        (None, "function") => {
            Some((assigned(code[..start].trim_end().strip_suffix("function")?), start, body))
        }
        (None, name) => Some((name.to_owned(), start, body)),
    }
}

/// The bracket that the last one closes.
fn opening(head: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in head.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The name that a function without one of its own is given: `name = …`, `name: …`.
fn assigned(before: &str) -> String {
    let before = before.trim_end();
    let before = before.strip_suffix("async").unwrap_or(before).trim_end();
    match before.strip_suffix(['=', ':']) {
        Some(before) => last_word(before.trim_end()).to_owned(),
        None => "=>".to_owned(),
    }
}

fn last_word(text: &str) -> &str {
    let start = text.char_indices().rev().take_while(|(_, letter)| is_of_word(*letter)).last();
    start.map_or("", |(at, _)| &text[at..])
}
