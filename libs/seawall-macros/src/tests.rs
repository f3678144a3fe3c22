//! What the attribute says to mistakes. That its code works is tested in `seawall`, which has the guards.

use proc_macro2::TokenStream;

use crate::expanded;

/// The message for this attribute above this function, or nothing if it is accepted.
fn complaint(options: &str, function: &str) -> String {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("the test is made of tokens");
    expanded(tokens(options), tokens(function)).err().map(|error| error.to_string()).unwrap_or_default()
}

const FINE: &str = "async fn charge(order: &Order) -> Result<u32, Error<E>> { Ok(1) }";

fn check(options: &str, function: &str, expected: &str) {
    let text = complaint(options, function);
    assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{options}: {text:?}");
}

/// ENG-16: a mistake in the options is named, with what was meant.
#[test]
fn eng_16_options_that_make_no_sense_are_refused() {
    check("\"payments\", idempotent, fallback = pending, clone(order),", FINE, "");
    check("", FINE, "which guard?");
    check("idempotent", FINE, "which guard?");
    check("guard = a, guard = b", FINE, "stands first, and once");
    check("\"a\", idempotant", FINE, "`idempotant` is no option of `#[guarded]`; there are: ");
    check("\"a\", idempotent, keyed", FINE, "`idempotent` and `keyed` exclude each other");
    check("\"a\", fallback", FINE, "`fallback` needs a value: `fallback = …`");
    check("\"a\", fallback = 7", FINE, "a fallback is the name of a function or method, or a closure");
    check("\"a\", fallback = || 7", FINE, "a closure that takes the error");
    check("\"a\", operation = \"b\", operation = \"c\"", FINE, "`operation` is given twice");
    check("\"a\", about = \"b\", about = \"c\"", FINE, "`about` is given twice");
    check("\"a\", when = x", FINE, "there is no `fallback`");
    check("\"a\", clone", FINE, "`clone` names arguments");
    check("\"a\", clone(ordre)", FINE, "`charge` has no argument `ordre`");
    check("\"a\", hedged", FINE, "add `idempotent`, `keyed` or `key = …`");
    check("\"a\" idempotent", FINE, "expected `,`");
}

/// ENG-16: a function that can't be guarded is refused, with what to write instead.
#[test]
fn eng_16_functions_that_cannot_be_guarded_are_refused() {
    check("\"a\"", "struct Payments;", "stands above a function or a method");
    check("\"a\"", "fn charge() -> Result<u32, E>;", "put `#[guarded]` above the method in the `impl`");
    check("\"a\"", "fn charge() {}", "a guarded function returns a `Result`");
    check("\"a\"", "const fn charge() -> Result<u32, E> { Ok(1) }", "a `const fn` can't be guarded");
    check("\"a\"", "fn charge() -> impl Future<Output = Result<u32, E>> {}", "write an `async fn`");
    check("\"a\"", "fn charge() -> Pin<Box<dyn Future<Output = Result<u32, E>>>> {}", "`#[async_trait]`");
    check(
        "\"a\", idempotent, hedged",
        "fn charge() -> Result<u32, E> {}",
        "only an `async fn` can be hedged",
    );
}

/// ENG-16: an argument that attempts can't share is refused, with what to write instead.
#[test]
fn eng_16_arguments_that_attempts_cannot_share_are_refused() {
    let mutable = "async fn charge(mut order: Order) -> Result<u32, E> {}";
    check("\"a\"", mutable, "write `clone(order)` in the attribute");
    check("\"a\", clone(order)", mutable, "");
    check("\"a\", attempt", "fn charge(attempt: u32) -> Result<u32, E> {}", "the name of the attempt");
    let pair = "fn charge((a, b): (u32, u32)) -> Result<u32, E> {}";
    check("\"a\", fallback = pending", pair, "give this argument a name");
    check("\"a\"", pair, "");
    let lent = "async fn charge(&mut self, order: &Order) -> Result<u32, E> {}";
    check("\"a\", fallback = pending", lent, "write a closure of the error, `fallback = |error| …`");
    check("\"a\", idempotent, hedged", lent, "can't share a `&mut` argument");
    check("\"a\", fallback = |_| 7", lent, "");
}
