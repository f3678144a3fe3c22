//! The attribute `#[guarded]` of Seawall.
#![doc = ""]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod expand;
mod function;
mod options;
#[cfg(test)]
mod tests;

use function::Function;
use options::Options;
use proc_macro2::TokenStream;

/// Runs the body of a function as the operation of a guard. Re-exported as `seawall::guarded`, where it is documented.
#[proc_macro_attribute]
pub fn guarded(
    options: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let function = TokenStream::from(function);
    match expanded(options.into(), function.clone()) {
        Ok(code) => code.into(),
        // The function stays, so that the only error shown is the one that matters.
        Err(error) => [error.into_compile_error(), function].into_iter().collect::<TokenStream>().into(),
    }
}

fn expanded(options: TokenStream, function: TokenStream) -> syn::Result<TokenStream> {
    let function = syn::parse2::<Function>(function)?;
    let options = syn::parse2::<Options>(options)?;
    function.check(&options)?;
    Ok(expand::expand(&options, &function))
}
