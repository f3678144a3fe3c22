//! The function below the attribute, and which functions can be guarded.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Pat, PatIdent, PathArguments, PathSegment, ReceiverKind,
    Result, ReturnType, Signature, Token, Type, Visibility, braced,
};

use crate::options::{Fallback, Options};

pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// What stands between its braces, as it was written.
    pub(crate) body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if !input.peek(Token![fn]) && !input.peek2(Token![fn]) && !input.peek3(Token![fn]) {
            return Err(Error::new(input.span(), "`#[guarded]` stands above a function or a method"));
        }
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) {
            let text = "there is no body to guard: put `#[guarded]` above the method in the `impl`";
            return Err(Error::new(signature.ident.span(), text));
        }
        let body;
        braced!(body in input);
        Ok(Function { attributes, visibility, signature, body: body.parse()? })
    }
}

impl Function {
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some()
    }

    pub(crate) fn returned_type(&self) -> Option<&Type> {
        match &self.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, returned) => Some(returned),
        }
    }

    /// `T` and `E`, if it says `Result<T, E>` and not another name for that.
    pub(crate) fn value_and_error(&self) -> Option<(&Type, &Type)> {
        let segment = last_segment(self.returned_type()?).filter(|segment| segment.ident == "Result")?;
        match type_arguments(segment)[..] {
            [value, error] => Some((value, error)),
            _ => None,
        }
    }

    /// Arguments of the type `&mut …`, and `&mut self`: they are lent to one attempt after another.
    pub(crate) fn lends_self(&self) -> bool {
        self.signature.receiver().is_some_and(|receiver| match &receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => mutability.is_some(),
            ReceiverKind::Typed(_, of) => is_mutable_reference(of),
            _ => false,
        })
    }

    pub(crate) fn lent(&self) -> impl Iterator<Item = &Ident> {
        self.typed()
            .filter(|(_, of)| is_mutable_reference(of))
            .filter_map(|(pattern, _)| name(pattern).map(|name| &name.ident))
    }

    /// Its arguments but `self`.
    pub(crate) fn typed(&self) -> impl Iterator<Item = (&Pat, &Type)> {
        self.signature.inputs.iter().filter_map(|argument| match argument {
            FnArg::Typed(argument) => Some((&*argument.pat, &*argument.ty)),
            FnArg::Receiver(_) => None,
        })
    }

    /// Whether this function can be guarded as the options say.
    pub(crate) fn check(&self, options: &Options) -> Result<()> {
        if let Some(token) = &self.signature.constness {
            return Err(Error::new(token.span(), "a `const fn` can't be guarded"));
        }
        self.check_returned()?;
        self.check_arguments(options)?;
        self.check_combinations(options)
    }

    fn check_returned(&self) -> Result<()> {
        let Some(returned) = self.returned_type() else {
            let text =
                "a guarded function returns a `Result`, by which the guard sees whether an attempt failed";
            return Err(Error::new(self.signature.ident.span(), text));
        };
        if matches!(returned, Type::ImplTrait(_)) {
            let text =
                "write an `async fn` that returns a `Result`: the guard must be able to run the body again";
            return Err(Error::new(returned.span(), text));
        }
        if last_segment(returned).is_some_and(|segment| segment.ident == "Pin") {
            let text = "this returns a boxed future, as `#[async_trait]` makes it: write an `async fn` without that attribute, \
                        or guard an `async fn` that this one calls";
            return Err(Error::new(returned.span(), text));
        }
        Ok(())
    }

    fn check_arguments(&self, options: &Options) -> Result<()> {
        for cloned in &options.cloned {
            if !self.typed().any(|(pattern, _)| name(pattern).is_some_and(|name| name.ident == *cloned)) {
                return Err(Error::new(
                    cloned.span(),
                    format!("`{}` has no argument `{cloned}`", self.signature.ident),
                ));
            }
        }
        for (pattern, of) in self.typed() {
            let Some(PatIdent { ident, mutability, .. }) = name(pattern) else {
                let is_needed = matches!(options.fallback, Some(Fallback::Function(_)));
                if is_needed || is_mutable_reference(of) {
                    let text = "give this argument a name, so that it can be passed on";
                    return Err(Error::new(pattern.span(), text));
                }
                continue;
            };
            if options.attempt.as_ref() == Some(ident) {
                let text = "this argument has the name of the attempt; choose another";
                return Err(Error::new(ident.span(), text));
            }
            if let Some(token) = mutability.as_ref().filter(|_| !options.is_cloned(ident)) {
                let text = format!(
                    "each attempt would see what the one before it has changed: write `clone({ident})` in the attribute"
                );
                return Err(Error::new(token.span(), text));
            }
        }
        Ok(())
    }

    fn check_combinations(&self, options: &Options) -> Result<()> {
        let lends = self.lends_self() || self.lent().next().is_some();
        if let Some(fallback @ Fallback::Function(_)) = options.fallback.as_ref().filter(|_| lends) {
            let text = "the attempts hold the `&mut` argument, so that this function can't get it too: write a closure of the \
                        error, `fallback = |error| …`";
            return Err(Error::new(fallback.span(), text));
        }
        if let (Some(when), None) = (options.passed_on("when"), &options.fallback) {
            let text = "`when` says what the fallback stands in for, and there is no `fallback`";
            return Err(Error::new(when.span(), text));
        }
        let Some(hedged) = options.hedged else { return Ok(()) };
        let problem = if !self.is_async() {
            "only an `async fn` can be hedged: nothing runs beside code that blocks"
        } else if lends {
            "hedges run beside each other and can't share a `&mut` argument"
        } else if options.safety.as_ref().is_none_or(|safety| safety.method == "once") {
            "a call that is hedged may run twice: add `idempotent`, `keyed` or `key = …`"
        } else {
            return Ok(());
        };
        Err(Error::new(hedged, problem))
    }
}

pub(crate) fn name(pattern: &Pat) -> Option<&PatIdent> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(name),
        _ => None,
    }
}

pub(crate) fn is_mutable_reference(of: &Type) -> bool {
    matches!(of, Type::Reference(reference) if reference.mutability.is_some())
}

fn last_segment(of: &Type) -> Option<&PathSegment> {
    match of {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn type_arguments(segment: &PathSegment) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    });
    types.collect()
}
