//! What stands in the brackets of the attribute.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprClosure, Ident, LitStr, Path, Result, Token, Type, parenthesized};

const KNOWN: &str = "`guard = …`, `once`, `idempotent`, `keyed`, `key = …`, `fallback = …`, `when = …`, `dead_letter = …`, \
                     `classify = …`, `hedged`, `attempt`, `attempt_timeout = …`, `deadline = …`, `operation = …`, `about = …`, \
                     `error = …`, `clone(…)`";

/// Everything that the attribute says.
pub(crate) struct Options {
    pub(crate) guard: GuardSource,
    pub(crate) safety: Option<Safety>,
    pub(crate) fallback: Option<Fallback>,
    pub(crate) hedged: Option<Span>,
    /// The name under which the body sees its attempt.
    pub(crate) attempt: Option<Ident>,
    /// The error type of the body.
    pub(crate) error: Option<Type>,
    pub(crate) operation: Option<Expr>,
    /// Methods of `CallBuilder` of the same name, with their one argument.
    pub(crate) passed_on: Vec<(Ident, Expr)>,
    /// Arguments of which each attempt gets a copy of its own.
    pub(crate) cloned: Vec<Ident>,
}

pub(crate) enum GuardSource {
    /// By name, from the global registry.
    Named(LitStr),
    /// An expression that is a guard or a reference to one.
    Given(Box<Expr>),
}

pub(crate) struct Safety {
    pub(crate) method: Ident,
    pub(crate) key: Option<Expr>,
}

pub(crate) enum Fallback {
    /// Gets the arguments of the function and the error.
    Function(Path),
    /// Gets the error.
    Closure(Box<ExprClosure>),
}

impl Fallback {
    pub(crate) fn span(&self) -> Span {
        match self {
            Fallback::Function(path) => path.span(),
            Fallback::Closure(closure) => closure.span(),
        }
    }
}

impl Options {
    pub(crate) fn passed_on(&self, name: &str) -> Option<&Ident> {
        self.passed_on.iter().map(|(option, _)| option).find(|option| *option == name)
    }

    pub(crate) fn is_cloned(&self, argument: &Ident) -> bool {
        self.cloned.contains(argument)
    }

    fn take(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "once" | "idempotent" | "keyed" => self.set_safety(Safety { method: name.clone(), key: None })?,
            "key" => self.set_safety(Safety { method: name.clone(), key: Some(value(name, input)?) })?,
            "hedged" => set(&mut self.hedged, name, name.span())?,
            "attempt" => set(&mut self.attempt, name, name.clone())?,
            "error" => {
                equals(name, input)?;
                set(&mut self.error, name, input.parse()?)?;
            }
            "operation" => set(&mut self.operation, name, value(name, input)?)?,
            "fallback" => set(&mut self.fallback, name, fallback(value(name, input)?)?)?,
            "classify" | "when" | "dead_letter" | "about" | "deadline" | "attempt_timeout" => {
                if self.passed_on(&name.to_string()).is_some() {
                    return Err(twice(name));
                }
                self.passed_on.push((name.clone(), value(name, input)?));
            }
            "clone" => {
                if !input.peek(syn::token::Paren) {
                    return Err(Error::new(name.span(), "`clone` names arguments: `clone(order, customer)`"));
                }
                let arguments;
                parenthesized!(arguments in input);
                self.cloned.extend(arguments.parse_terminated(Ident::parse, Token![,])?);
            }
            "guard" => return Err(Error::new(name.span(), "`guard = …` or a name stands first, and once")),
            unknown => {
                let text = format!("`{unknown}` is no option of `#[guarded]`; there are: {KNOWN}");
                return Err(Error::new(name.span(), text));
            }
        }
        Ok(())
    }

    fn set_safety(&mut self, safety: Safety) -> Result<()> {
        if let Some(first) = &self.safety {
            let text = format!("`{}` and `{}` exclude each other", first.method, safety.method);
            return Err(Error::new(safety.method.span(), text));
        }
        self.safety = Some(safety);
        Ok(())
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Options {
            guard: guard(input)?,
            safety: None,
            fallback: None,
            hedged: None,
            attempt: None,
            error: None,
            operation: None,
            passed_on: Vec::new(),
            cloned: Vec::new(),
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let name: Ident = input.parse()?;
            options.take(&name, input)?;
        }
        Ok(options)
    }
}

fn guard(input: ParseStream<'_>) -> Result<GuardSource> {
    const WANTED: &str =
        "which guard? Write its name first, as in `#[guarded(\"payments\")]`, or `guard = self.payments`";
    if input.peek(LitStr) {
        return Ok(GuardSource::Named(input.parse()?));
    }
    let name: Ident = input.parse().map_err(|error| Error::new(error.span(), WANTED))?;
    if name != "guard" {
        return Err(Error::new(name.span(), WANTED));
    }
    Ok(GuardSource::Given(Box::new(value(&name, input)?)))
}

fn fallback(value: Expr) -> Result<Fallback> {
    const WANTED: &str = "a fallback is the name of a function or method, or a closure that takes the error";
    match value {
        Expr::Path(path) if path.qself.is_none() => Ok(Fallback::Function(path.path)),
        Expr::Closure(closure) if closure.inputs.len() == 1 => Ok(Fallback::Closure(Box::new(closure))),
        other => Err(Error::new(other.span(), WANTED)),
    }
}

fn equals(name: &Ident, input: ParseStream<'_>) -> Result<()> {
    if !input.peek(Token![=]) {
        return Err(Error::new(name.span(), format!("`{name}` needs a value: `{name} = …`")));
    }
    input.parse::<Token![=]>().map(drop)
}

fn value(name: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    equals(name, input)?;
    input.parse()
}

fn set<T>(place: &mut Option<T>, name: &Ident, value: T) -> Result<()> {
    if place.is_some() {
        return Err(twice(name));
    }
    *place = Some(value);
    Ok(())
}

fn twice(name: &Ident) -> Error {
    Error::new(name.span(), format!("`{name}` is given twice"))
}
