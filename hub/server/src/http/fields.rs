//! The reason for an unknown name.

/// The reason for an unknown name, with the known one that differs in one slip.
pub(super) fn unknown(kind: &str, name: &str, known: &str) -> String {
    match known.split(", ").find(|other| is_one_slip(name, other)) {
        Some(near) => format!("unknown {kind}, did you mean `{near}`? Known: {known}"),
        None => format!("unknown {kind}. Known: {known}"),
    }
}

/// True if one letter is added, dropped or changed, or two neighbours are swapped. Case does not count.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase().into_bytes(), other.to_ascii_lowercase().into_bytes());
    let shorter = one.len().min(other.len());
    let before = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let after = one.iter().rev().zip(other.iter().rev()).take(shorter - before).take_while(|(a, b)| a == b);
    let after = after.count();
    match (&one[before..one.len() - after], &other[before..other.len() - after]) {
        ([a, b], [c, d]) => a == d && b == c,
        (a, b) => a.len() <= 1 && b.len() <= 1 && shorter >= 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API-2: a field that is misspelt gets a suggestion; the known fields are listed in any case.
    #[test]
    fn api_2_a_misspelt_field_gets_a_suggestion() {
        for (name, near) in
            [("polcy", "policy"), ("Adress", "address"), ("nmae", "name"), ("policyy", "policy")]
        {
            let reason = unknown("field", name, "name, address, policy");
            let expected = format!("unknown field, did you mean `{near}`? Known: name, address, policy");
            assert_eq!(reason, expected);
        }
        for name in ["", "x", "retries", "names2"] {
            assert_eq!(unknown("field", name, "name, address"), "unknown field. Known: name, address");
        }
    }
}
