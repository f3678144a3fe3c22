//! Rust source, read just well enough for the house rules: without a parser, so that `cargo xtask` starts in
//! seconds.

/// The source with every comment, string and character literal blanked out; lines and columns stay where they
/// are.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Every string literal and every doc comment of an item, with the number of its first line.
pub(super) fn texts(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let end = literal_or_comment(&chars, at).max(at + 1);
        let piece: String = chars[at..end].iter().collect();
        if piece.len() > 1 && (piece.starts_with("///") || !piece.starts_with(['/', '\''])) {
            found.push((line, piece.clone()));
        }
        line += piece.matches('\n').count();
        at = end;
    }
    found
}

/// Where the literal or comment that starts at `at` ends; `at` itself if there is none.
fn literal_or_comment(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let after_word = at > 0 && is_word(chars[at - 1]);
    match rest {
        ['/', '/', ..] => at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => at + block_comment(rest),
        ['"', ..] => at + 1 + quoted(&rest[1..], '"'),
        ['r', '"' | '#', ..] if !after_word => at + raw(rest),
        ['b', 'r', '"' | '#', ..] if !after_word => at + 1 + raw(&rest[1..]),
        // A lifetime has no closing quote: only `'x'` and `'\…'` are literals.
        ['\'', '\\', ..] => at + 3 + quoted(rest.get(3..).unwrap_or_default(), '\''),
        ['\'', _, '\'', ..] => at + 3,
        _ => at,
    }
}

fn block_comment(chars: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn quoted(chars: &[char], end: char) -> usize {
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == end => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r"…"` and `r#"…"#`; a raw identifier (`r#type`) is left alone.
fn raw(chars: &[char]) -> usize {
    let hashes = chars[1..].iter().take_while(|c| **c == '#').count();
    if chars.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let start = 2 + hashes;
    let length = chars[start..].windows(end.len()).position(|window| window == end);
    length.map_or(chars.len(), |length| start + length + end.len())
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The source with the lines of every item under `#[cfg(test)]` (or `cfg(all(test, …))`) emptied, so that
/// line numbers hold.
pub(super) fn product(text: &str) -> String {
    let tests = test_lines(text);
    let lines = text.lines().zip(tests).map(|(line, is_test)| if is_test { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// How many lines are not tests.
pub(super) fn product_lines(text: &str) -> usize {
    test_lines(text).into_iter().filter(|is_test| !is_test).count()
}

/// For each line whether it belongs to an item that is compiled for tests only.
fn test_lines(text: &str) -> Vec<bool> {
    let code = code(text);
    let lines: Vec<&str> = code.lines().collect();
    let mut marks = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        if line.starts_with("#![") && is_test_attribute(line) {
            return vec![true; lines.len()];
        }
        let end = if line.starts_with("#[") && is_test_attribute(line) { item_end(&lines, at) } else { at };
        marks[at..end].fill(true);
        at = end.max(at + 1);
    }
    marks
}

fn is_test_attribute(line: &str) -> bool {
    line.contains("cfg(test)") || line.contains("cfg(all(test,")
}

/// The line after the item that starts at `start`: it ends with its block, or with a semicolon outside of
/// brackets.
fn item_end(lines: &[&str], start: usize) -> usize {
    let mut depth = 0_i32;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return index;
            }
            if depth == 0 && (c == '}' || c == ';') {
                return index + 1;
            }
        }
    }
    lines.len()
}

#[test]
fn comments_and_literals_are_blanked_and_code_stays() {
    let blanked = |text: &str| code(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(blanked("a // tokio\nb"), "a b");
    assert_eq!(blanked("a /* x /* tokio */ y */ b"), "a b");
    assert_eq!(blanked(r#"a("tokio \" tokio", b'x', '\'', '"') b"#), "a( , b , , ) b");
    assert_eq!(blanked("a(r#\"tokio \" tokio\"#) b"), "a( ) b");
    assert_eq!(blanked("fn f<'a>(x: &'a str, r#type: u8)"), "fn f<'a>(x: &'a str, r#type: u8)");
    assert_eq!(code("a\n\"b\nc\"\nd").lines().count(), 4);
}

#[test]
fn only_what_is_compiled_for_tests_is_left_out() {
    let text = "mod a;\n#[cfg(test)]\nmod tests;\nfn f() {}\n\
                #[cfg(all(test, unix))]\nmod more {\n    fn g() {}\n}\nfn h() {}";
    assert_eq!(product(text).split_whitespace().collect::<Vec<_>>().join(" "), "mod a; fn f() {} fn h() {}");
    assert_eq!(product_lines(text), 3);
    assert_eq!(product_lines("#[cfg(not(test))]\nfn f() {\n}"), 3);
    assert_eq!(product_lines("#![cfg(test)]\nfn f() {\n}"), 0);
    assert_eq!(product_lines("// \"#[cfg(test)]\"\nlet brace = \"{\";\nfn f() {}"), 3);
}
