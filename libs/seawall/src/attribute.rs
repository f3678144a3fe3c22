//! What the code that `#[guarded]` writes calls at run time. It is not part of the public API and may change at any time.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::error::Error;
use crate::guard::Guard;
use crate::registry::Registry;

/// The guard that a function names. Each such function has one.
#[derive(Debug)]
pub struct NamedGuard {
    name: &'static str,
    /// Found by the first call. A reload that drops the guard from the file must not make the function fail.
    first: OnceLock<Guard>,
}

impl NamedGuard {
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        NamedGuard { name, first: OnceLock::new() }
    }

    /// The guard as the global registry has it now, or as the first call found it.
    ///
    /// # Panics
    /// If there is no global registry, or if it never had a guard of this name.
    #[track_caller]
    pub fn find(&self) -> Guard {
        match Registry::global().and_then(|registry| registry.guard(self.name)) {
            Some(guard) => {
                self.first.get_or_init(|| guard.clone());
                guard
            }
            None => self.first.get().cloned().unwrap_or_else(|| self.missing()),
        }
    }

    #[cold]
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a function that names a guard which nobody made is a bug of the program"
    )]
    fn missing(&self) -> ! {
        let name = self.name;
        match Registry::global() {
            None => panic!(
                "#[guarded({name:?})]: there is no global registry; call `Registry::set_global` where the program starts"
            ),
            Some(registry) if registry.keyed(name).is_some() => panic!(
                "#[guarded({name:?})]: `{name}` is a family of guards; write `guard = family.guard(key)` instead of its name"
            ),
            Some(registry) => {
                let names = registry.names().join(", ");
                panic!("#[guarded({name:?})]: the global registry has no guard `{name}`; it has: {names}")
            }
        }
    }
}

/// What a guarded function returns.
#[diagnostic::on_unimplemented(
    message = "a guarded function must return a `Result`, and not `{Self}`",
    label = "not a `Result`"
)]
pub trait ReturnType {
    type Value;
    type Error;
}

impl<T, E> ReturnType for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// Stands for a type without a value of it.
pub struct TypeOf<T>(PhantomData<fn() -> T>);

impl<T> Clone for TypeOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TypeOf<T> {}

impl<T> TypeOf<T> {
    #[must_use]
    pub const fn new() -> Self {
        TypeOf(PhantomData)
    }
}

impl<T> Default for TypeOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TypeOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypeOf")
    }
}

impl<E> TypeOf<Error<E>> {
    /// Where a function returns the error of a guard, its body returns the operation's own.
    #[must_use]
    pub const fn body_error(self) -> TypeOf<E> {
        TypeOf(PhantomData)
    }
}

/// Where a function returns another error, its body returns that error too. The method of `TypeOf<Error<E>>` comes first,
/// because it is no trait's.
pub trait AnyError: Sized {
    type Error;
    fn body_error(self) -> TypeOf<Self::Error>;
}

impl<E> AnyError for TypeOf<E> {
    type Error = E;

    fn body_error(self) -> TypeOf<E> {
        self
    }
}

/// Tells the compiler the error type of a body before it looks at the body. It is never called.
#[cold]
pub fn failure<T, E>(_: TypeOf<E>) -> Result<T, E> {
    unreachable!("it stands behind `if false`")
}

/// Tells the compiler the type of an error.
#[inline]
pub fn typed<E>(_: TypeOf<E>, error: &Error<E>) -> &Error<E> {
    error
}

/// The error of the function, made from that of the guard. By a name of its own, because a lint finds fault with `From` where
/// both are the same.
#[inline]
pub fn converted<E, E2: From<Error<E>>>(error: Error<E>) -> E2 {
    error.into()
}

/// Calls a closure, whose argument has its type from the error.
#[inline]
pub fn ask<E, R>(error: &Error<E>, fallback: impl FnOnce(&Error<E>) -> R) -> R {
    fallback(error)
}

/// As [`ask`], for an async closure.
#[inline]
pub async fn ask_async<E, R>(error: &Error<E>, fallback: impl AsyncFnOnce(&Error<E>) -> R) -> R {
    fallback(error).await
}

/// What the fallback of a blocking function may return. `M` tells the forms apart, and is inferred.
#[diagnostic::on_unimplemented(
    message = "the fallback returns `{Self}`, and must return `{T}`, `Option<{T}>` or `Result<{T}, _>` with an error that converts into `{E}`",
    label = "the fallback"
)]
pub trait FallbackAnswer<T, E, M> {
    /// The answer; nothing, if the error of the call itself is to be returned; or an error to return in its place.
    fn answer(self) -> Result<Option<T>, E>;
}

#[derive(Debug)]
pub struct IsValue;
#[derive(Debug)]
pub struct IsOption;
#[derive(Debug)]
pub struct IsResult;

impl<T, E> FallbackAnswer<T, E, IsValue> for T {
    fn answer(self) -> Result<Option<T>, E> {
        Ok(Some(self))
    }
}

impl<T, E> FallbackAnswer<T, E, IsOption> for Option<T> {
    fn answer(self) -> Result<Option<T>, E> {
        Ok(self)
    }
}

impl<T, E: From<E2>, E2> FallbackAnswer<T, E, IsResult> for Result<T, E2> {
    fn answer(self) -> Result<Option<T>, E> {
        self.map(Some).map_err(E::from)
    }
}

/// What the fallback of an async function may return: the same, or a future of it.
#[diagnostic::on_unimplemented(
    message = "the fallback returns `{Self}`, and must return `{T}`, `Option<{T}>` or `Result<{T}, _>` with an error that converts into `{E}`, or a future of one of these",
    label = "the fallback"
)]
pub trait AsyncFallbackAnswer<T, E, M> {
    fn answer(self) -> impl Future<Output = Result<Option<T>, E>>;
}

#[derive(Debug)]
pub struct IsReady<M>(M);
#[derive(Debug)]
pub struct IsFuture<M>(M);

impl<T, E, M, R: FallbackAnswer<T, E, M>> AsyncFallbackAnswer<T, E, IsReady<M>> for R {
    fn answer(self) -> impl Future<Output = Result<Option<T>, E>> {
        std::future::ready(FallbackAnswer::answer(self))
    }
}

impl<T, E, M, R, Fut> AsyncFallbackAnswer<T, E, IsFuture<M>> for Fut
where
    Fut: Future<Output = R>,
    R: FallbackAnswer<T, E, M>,
{
    async fn answer(self) -> Result<Option<T>, E> {
        self.await.answer()
    }
}

/// Asks a fallback. A failure of its own is put aside in `failure`, because the guard has no place for it.
#[inline]
pub fn answer<T, E, M>(answer: impl FallbackAnswer<T, E, M>, failure: &mut Option<E>) -> Result<T, Nothing> {
    told(answer.answer(), failure)
}

/// As [`answer`], for the fallback of an async function.
#[inline]
pub async fn answer_async<T, E, M>(
    answer: impl AsyncFallbackAnswer<T, E, M>,
    failure: &mut Option<E>,
) -> Result<T, Nothing> {
    told(answer.answer().await, failure)
}

/// The fallback has no answer.
#[derive(Debug)]
pub struct Nothing;

fn told<T, E>(answer: Result<Option<T>, E>, failure: &mut Option<E>) -> Result<T, Nothing> {
    match answer {
        Ok(answer) => answer.ok_or(Nothing),
        Err(error) => {
            *failure = Some(error);
            Err(Nothing)
        }
    }
}
