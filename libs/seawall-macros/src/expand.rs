//! The code that is written for a guarded function.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, Pat};

use crate::function::{Function, name};
use crate::options::{Fallback, GuardSource, Options};

/// What all the pieces of one function need.
struct Writer<'a> {
    options: &'a Options,
    function: &'a Function,
    /// The type of a good answer.
    value: TokenStream,
    /// The error that callers of the function see.
    outer: TokenStream,
}

pub(crate) fn expand(options: &Options, function: &Function) -> TokenStream {
    let writer = Writer::new(options, function);
    let Function { attributes, visibility, .. } = function;
    let signature = writer.signature();
    let guard = internal("guard");
    let source = match &options.guard {
        GuardSource::Named(name) => quote_spanned! {name.span()=> {
            static NAMED: ::seawall::attribute::NamedGuard = ::seawall::attribute::NamedGuard::new(#name);
            NAMED.find()
        }},
        GuardSource::Given(guard) => quote!((#guard)),
    };
    let (body_error, body_error_type) = (internal("body_error"), writer.body_error());
    let call = writer.call(&guard);
    quote! {
        #(#attributes)*
        #visibility #signature {
            let #guard: &::seawall::Guard = &#source;
            let #body_error = #body_error_type;
            #call
        }
    }
}

/// A name that the body can't see.
fn internal(name: &str) -> Ident {
    Ident::new(&format!("__seawall_{name}"), Span::mixed_site())
}

impl<'a> Writer<'a> {
    fn new(options: &'a Options, function: &'a Function) -> Self {
        let returned = function.returned_type();
        let (value, outer) = match function.value_and_error() {
            Some((value, error)) => (quote!(#value), quote!(#error)),
            None => {
                let part = |part: TokenStream| quote_spanned!(returned.span()=> <#returned as ::seawall::attribute::ReturnType>::#part);
                (part(quote!(Value)), part(quote!(Error)))
            }
        };
        Writer { options, function, value, outer }
    }

    /// As it was written, but that an argument which is cloned is `mut` in the attempt alone.
    fn signature(&self) -> syn::Signature {
        let mut signature = self.function.signature.clone();
        for argument in &mut signature.inputs {
            if let FnArg::Typed(argument) = argument
                && let Pat::Ident(pattern) = &mut *argument.pat
                && self.options.is_cloned(&pattern.ident)
            {
                pattern.mutability = None;
            }
        }
        signature
    }

    /// The call, and what the function makes of its result.
    fn call(&self, guard: &Ident) -> TokenStream {
        let Writer { options, outer, .. } = self;
        let (failure, error) = (internal("failure"), internal("error"));
        let about = self.about_the_call();
        let attempts = self.attempts();
        let converted = quote_spanned! {outer.span()=> ::seawall::attribute::converted::<_, #outer>(#error)};
        let Some(fallback) = &options.fallback else {
            return quote! {
                match #guard #about #attempts {
                    ::core::result::Result::Ok(value) => ::core::result::Result::Ok(value),
                    ::core::result::Result::Err(#error) => ::core::result::Result::Err(#converted),
                }
            };
        };
        let fallback = self.fallback(fallback, &failure);
        quote! {
            let mut #failure: ::core::option::Option<#outer> = ::core::option::Option::None;
            let answer = #guard #about #fallback #attempts;
            match answer {
                ::core::result::Result::Ok(answer) => ::core::result::Result::Ok(answer.into_value()),
                ::core::result::Result::Err(#error) => ::core::result::Result::Err(match #failure {
                    ::core::option::Option::Some(failure) => failure,
                    ::core::option::Option::None => #converted,
                }),
            }
        }
    }

    /// The error type of the body: the operation's own, where the function returns the error of a guard, which only the
    /// compiler knows.
    fn body_error(&self) -> TokenStream {
        let outer = &self.outer;
        match &self.options.error {
            Some(error) => quote!(::seawall::attribute::TypeOf::<#error>::new()),
            None => quote!({
                #[allow(unused_imports)]
                use ::seawall::attribute::AnyError as _;
                ::seawall::attribute::TypeOf::<#outer>::new().body_error()
            }),
        }
    }

    /// What is said about the call, as methods of its builder.
    fn about_the_call(&self) -> TokenStream {
        let Writer { options, function, .. } = self;
        let safety = match &options.safety {
            Some(safety) => {
                let (method, key) = (&safety.method, &safety.key);
                quote!(.#method(#key))
            }
            None => quote!(.once()),
        };
        let operation = options.operation.as_ref().map_or_else(
            || function.signature.ident.to_string().trim_start_matches("r#").to_token_stream(),
            ToTokens::to_token_stream,
        );
        let hedged = options.hedged.map(|span| quote_spanned!(span=> .hedged()));
        let passed_on = options.passed_on.iter().map(|(method, value)| quote!(.#method(#value)));
        quote!(#safety.operation(#operation) #(#passed_on)* #hedged)
    }

    /// The attempts, each of which runs the body.
    fn attempts(&self) -> TokenStream {
        let Writer { options, function, value, .. } = self;
        let (body, body_error) = (&function.body, internal("body_error"));
        let returned = quote!(::core::result::Result<#value, _>);
        let attempt = options.attempt.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
        let attempt = quote!(#attempt: ::seawall::Attempt);
        let copies = self.function.typed().filter_map(|(pattern, _)| {
            let pattern = name(pattern).filter(|pattern| options.is_cloned(&pattern.ident))?;
            let ident = &pattern.ident;
            Some(quote_spanned!(ident.span()=> let #pattern = ::core::clone::Clone::clone(&#ident);))
        });
        let mut before = copies.collect::<TokenStream>();
        before.extend(quote! {
            if false {
                return ::seawall::attribute::failure(#body_error);
            }
        });
        if !function.is_async() {
            return quote!(.run(|#attempt| -> #returned { #before #body }));
        }
        let lent: Vec<&Ident> = function.lent().collect();
        if lent.is_empty() && !function.lends_self() {
            return quote!(.call(async |#attempt| -> #returned { #before #body }).await);
        }
        // `self` can't be bound anew, so that in the body it has another name.
        let loan = internal("loan");
        let (own_self, this) = (function.lends_self().then(|| quote!(self,)), internal("self"));
        let own_this = function.lends_self().then(|| quote!(#this,));
        let reborrowed_this = function.lends_self().then(|| quote!(let #this = &mut **#this;));
        let body = if function.lends_self() { renamed(body.clone(), &this) } else { body.clone() };
        quote! {
            .call_on(&mut (#own_self #(#lent,)*), async |mut #loan, #attempt| -> #returned {
                let (#own_this #(#lent,)*) = &mut *#loan;
                #reborrowed_this
                #(let #lent = &mut **#lent;)*
                #before
                #body
            }).await
        }
    }

    fn fallback(&self, fallback: &Fallback, failure: &Ident) -> TokenStream {
        let Writer { function, value, outer, .. } = self;
        let (error, body_error) = (internal("error"), internal("body_error"));
        let asked = match fallback {
            Fallback::Function(path) => {
                let arguments = self.function.typed().filter_map(|(pattern, _)| {
                    let ident = &name(pattern)?.ident;
                    let cloned = self.options.is_cloned(ident);
                    Some(if cloned { quote!(::core::clone::Clone::clone(&#ident)) } else { quote!(#ident) })
                });
                let receiver = function.signature.receiver().map(|receiver| receiver.self_token);
                match (receiver, path.get_ident()) {
                    (Some(receiver), Some(method)) => quote_spanned! {method.span()=>
                        #receiver.#method(#(#arguments,)* #error)
                    },
                    (receiver, _) => {
                        let receiver = receiver.map(|receiver| quote!(#receiver,));
                        quote_spanned!(path.span()=> #path(#receiver #(#arguments,)* #error))
                    }
                }
            }
            Fallback::Closure(closure) if closure.asyncness.is_some() => {
                quote!(::seawall::attribute::ask_async(#error, #closure))
            }
            Fallback::Closure(closure) => quote!(::seawall::attribute::ask(#error, #closure)),
        };
        let typed = quote!(let #error = ::seawall::attribute::typed(#body_error, #error););
        let span = fallback.span();
        if function.is_async() {
            quote_spanned! {span=> .or_ask_lent(async |#error: ::seawall::fallback::LentError<_>| {
                let #error = &*#error;
                #typed
                ::seawall::attribute::answer_async::<#value, #outer, _>(#asked, &mut #failure).await
            })}
        } else {
            quote_spanned! {span=> .or_try(|#error: &::seawall::Error<_>| {
                #typed
                ::seawall::attribute::answer::<#value, #outer, _>(#asked, &mut #failure)
            })}
        }
    }
}

/// The same code with another name for `self`.
fn renamed(code: TokenStream, this: &Ident) -> TokenStream {
    let tokens = code.into_iter().map(|token| match token {
        TokenTree::Ident(ident) if ident == "self" => {
            TokenTree::Ident(Ident::new(&this.to_string(), this.span().located_at(ident.span())))
        }
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), renamed(group.stream(), this));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        token => token,
    });
    tokens.collect()
}
