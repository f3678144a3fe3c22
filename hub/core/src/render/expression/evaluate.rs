//! Evaluating an expression over an event.

use super::fault::Fault;
use super::filters::FilterArguments;
use super::meter::Meter;
use super::node::{Arguments, Node, Step};
use super::operate::negate;
use super::slice::slice;
use super::tree::Tree;
use super::value::{EvalResult, Map, VALUE_BYTES, Val};

/// What an expression is evaluated over.
#[derive(Clone, Copy)]
pub(super) struct EvalScope<'e> {
    pub(super) roots: &'e [Option<Tree<'e>>],
    pub(super) meter: &'e Meter,
}

impl<'e> EvalScope<'e> {
    /// The value of a part of an expression.
    pub(super) fn value(self, node: &'e Node) -> EvalResult<Val<'e>> {
        self.meter.spend(1)?;
        Ok(match node {
            Node::Root(at) => self.roots.get(*at).and_then(Option::as_ref).map_or(Val::UNDEFINED, Val::of),
            Node::None => Val::None,
            Node::Bool(yes) => Val::Bool(*yes),
            Node::Int(whole) => Val::Int(*whole),
            Node::Float(number) => Val::Float(*number),
            Node::Text(text) => Val::str(text),
            Node::List(items) => {
                self.meter.hold(items.len() * VALUE_BYTES)?;
                Val::list(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Node::Map(fields) => self.map(fields)?,
            Node::If(parts) => {
                let (condition, then, otherwise) = &**parts;
                match (self.value(condition)?.condition()?, otherwise) {
                    (true, _) => self.value(then)?,
                    (false, Some(otherwise)) => self.value(otherwise)?,
                    (false, None) => Val::Undefined { silent: true },
                }
            }
            Node::Compare(first, others) => {
                let mut left = self.value(first)?;
                for (operator, node) in others {
                    let right = self.value(node)?;
                    if !operator.apply(&left, &right, self.meter)?.is_true() {
                        return Ok(Val::Bool(false));
                    }
                    left = right;
                }
                Val::Bool(true)
            }
            Node::Steps(first, steps) => {
                let mut value = self.value(first)?;
                for step in steps {
                    value = self.step(value, step)?;
                }
                value
            }
        })
    }

    fn step(self, value: Val<'e>, step: &'e Step) -> EvalResult<Val<'e>> {
        self.meter.spend(1)?;
        match step {
            Step::Attr(name) => value.attr(name),
            Step::Item(key) => value.item(&self.value(key)?, self.meter),
            Step::Slice(bounds) => {
                let bound =
                    |node: &'e Option<Node>| node.as_ref().map_or(Ok(Val::None), |node| self.value(node));
                let [start, stop, step] = &**bounds;
                let bounds = [bound(start)?, bound(stop)?, bound(step)?];
                slice(&value, &bounds, self.meter).map_err(|fault| fault.by("[:]", || value.size()))
            }
            Step::Filter(filter, arguments) => {
                let (placed, named) = self.arguments(arguments)?;
                filter.apply(&value, &FilterArguments { placed: &placed, named: &named }, self.meter)
            }
            Step::Test(test, arguments) => {
                let (placed, _) = self.arguments(arguments)?;
                test.holds(&value, &placed, self.meter).map(Val::Bool)
            }
            Step::Operator(operator, node) => operator.apply(&value, &self.value(node)?, self.meter),
            Step::And(node) => {
                if value.condition()? {
                    self.value(node)
                } else {
                    Ok(value)
                }
            }
            Step::Or(node) => {
                if value.condition()? {
                    Ok(value)
                } else {
                    self.value(node)
                }
            }
            Step::Not => Ok(Val::Bool(!value.condition()?)),
            Step::Negate => negate(&value),
        }
    }

    #[expect(clippy::type_complexity, reason = "arguments by place and by name, used once")]
    fn arguments(self, arguments: &'e Arguments) -> EvalResult<(Vec<Val<'e>>, Vec<(&'e str, Val<'e>)>)> {
        let placed = arguments.placed.iter().map(|node| self.value(node)).collect::<Result<_, _>>()?;
        let named = |(name, node): &'e (Box<str>, Node)| Ok::<_, Fault>((&**name, self.value(node)?));
        Ok((placed, arguments.named.iter().map(named).collect::<Result<_, _>>()?))
    }

    /// An object that is written down in the expression, sorted by its keys. Of equal keys the last one counts.
    fn map(self, fields: &'e [(Node, Node)]) -> EvalResult<Val<'e>> {
        self.meter.hold(2 * fields.len() * VALUE_BYTES)?;
        let mut pairs: Vec<(Val<'e>, Val<'e>)> = Vec::with_capacity(fields.len());
        for (key, value) in fields {
            let (key, value) = (self.value(key)?, self.value(value)?);
            let (mut low, mut high) = (0, pairs.len());
            let mut same = None;
            while low < high && same.is_none() {
                let middle = usize::midpoint(low, high);
                match super::compare::order(&pairs[middle].0, &key, self.meter)? {
                    std::cmp::Ordering::Less => low = middle + 1,
                    std::cmp::Ordering::Greater => high = middle,
                    std::cmp::Ordering::Equal => same = Some(middle),
                }
            }
            match same {
                Some(at) => pairs[at].1 = value,
                None => {
                    self.meter.spend((pairs.len() - low) / 8)?;
                    pairs.insert(low, (key, value));
                }
            }
        }
        Ok(Val::Map(Map::Made(std::rc::Rc::new(pairs))))
    }
}
