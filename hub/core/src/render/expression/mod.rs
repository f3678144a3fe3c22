//! Expressions over an event, whose every step is paid for: no expression and no event take more time or memory than
//! the [`Meter`] of the rendering holds.

mod compare;
mod condition;
mod evaluate;
mod fault;
mod filters;
mod lower;
mod meter;
mod node;
mod operate;
mod show;
mod slice;
mod tree;
mod value;

pub(super) use fault::Fault;
pub use meter::{MEMORY_BYTES_MAX, Meter, WORK_MAX};
pub(super) use show::{TextBuilder, show, write_json, write_json_text};
pub use tree::Tree;
pub(super) use value::Val;

use evaluate::EvalScope;
use node::Node;

/// The names that an expression over an event may begin with.
pub(super) const EVENT: [&str; 7] = ["id", "type", "source", "time", "data", "subject", "extensions"];
/// The names that an expression over a webhook may begin with.
pub(super) const WEBHOOK: [&str; 2] = ["data", "headers"];

/// The maximum length of an expression in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct CompiledExpression {
    text: Box<str>,
    node: Node,
    /// What it reads of the event, like `data.total`.
    reads: Vec<(usize, Vec<Box<str>>)>,
    /// Whether the expression itself handles missing values.
    minds_the_gap: bool,
    /// The names that it may begin with.
    roots: &'static [&'static str],
}

/// The reason why an expression gave no value.
#[derive(Debug)]
pub(super) enum ExpressionError {
    /// The event has no such field.
    Missing(String),
    /// The result is larger than a request may be.
    TooLarge,
    /// The evaluation costs more than a rendering may.
    TooCostly(String),
    /// Any other mistake.
    Wrong(String),
}

impl CompiledExpression {
    /// Compiles an expression. `roots` are the names that it may begin with.
    pub(super) fn new(text: &str, roots: &'static [&'static str]) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("there is nothing between the braces".into());
        }
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!(
                "an expression of {} bytes is too long; {EXPRESSION_BYTES_MAX} are allowed",
                text.len()
            ));
        }
        let lower::LoweredExpression { node, mut reads } = lower::lower(text, roots)?;
        reads.sort_unstable();
        reads.dedup();
        let minds_the_gap = text.contains("default") || text.contains("defined");
        Ok(CompiledExpression { text: text.into(), node, reads, minds_the_gap, roots })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates it, and does something with the value while it is there. What is missing is an error, unless the
    /// expression itself says otherwise.
    pub(super) fn eval<T>(
        &self,
        view: &super::TemplateContext<'_>,
        meter: &Meter,
        finish: impl FnOnce(&Val<'_>) -> Result<T, Fault>,
    ) -> Result<T, ExpressionError> {
        if !self.minds_the_gap
            && let Some(missing) = self.reads.iter().find(|read| is_missing(&view.0, read))
        {
            return Err(ExpressionError::Missing(self.path(missing)));
        }
        let value = EvalScope { roots: &view.0, meter }.value(&self.node);
        let finished =
            value.and_then(|value| if value.is_undefined() { Err(Fault::Missing) } else { finish(&value) });
        meter.end_expression();
        finished.map_err(|fault| match fault {
            Fault::Missing => ExpressionError::Missing(self.text().to_owned()),
            Fault::TooLarge => ExpressionError::TooLarge,
            Fault::Wrong(reason) => ExpressionError::Wrong(format!("`{}`: {reason}", self.text)),
            Fault::Spent(spent) => ExpressionError::TooCostly(spent.explain(&self.text, meter)),
        })
    }

    fn path(&self, (root, names): &(usize, Vec<Box<str>>)) -> String {
        let mut path = self.roots.get(*root).copied().unwrap_or_default().to_owned();
        for name in names {
            path.push('.');
            path.push_str(name);
        }
        path
    }
}

fn is_missing(roots: &[Option<Tree<'_>>], (root, names): &(usize, Vec<Box<str>>)) -> bool {
    let mut tree = roots.get(*root).and_then(Option::as_ref);
    for name in names {
        tree = tree.and_then(|tree| tree.get(name));
    }
    tree.is_none()
}
