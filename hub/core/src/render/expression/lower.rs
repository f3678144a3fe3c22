//! From a text to an expression: the syntax is minijinja's, whose parser reads it; what it means is here.
//!
//! # Why only its parser?
//! Its own evaluation counts instructions, and one filter or operator is one instruction whatever it works on, so neither
//! time nor memory have a bound. It has no place to hook an operator. The tests compare both on random expressions.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};
use minijinja::value::ValueKind;

use super::condition::Test;
use super::filters::BuiltinFilter;
use super::node::{Arguments, Node, Step};
use super::operate::Operator;

/// The number of `if`s in one expression. Each may be nested in the one before.
const IFS_MAX: usize = 128;
/// The number of `not`s or minus signs in a row.
const SIGNS_MAX: usize = 16;

/// An expression, and what it reads.
pub(super) struct LoweredExpression {
    pub(super) node: Node,
    /// What it reads of the event: a root by its place, and the names below it.
    pub(super) reads: Vec<(usize, Vec<Box<str>>)>,
}

/// Reads an expression. `roots` are the names that it may begin with.
pub(super) fn lower(text: &str, roots: &[&str]) -> Result<LoweredExpression, String> {
    check_nesting(text)?;
    let parsed = minijinja::machinery::parse_expr(text);
    let parsed = parsed.map_err(|error| format!("`{text}` is no expression: {}", say(&error)))?;
    let mut lowering = Lowerer { roots, reads: Vec::new() };
    let node = lowering.node(&parsed)?;
    Ok(LoweredExpression { node, reads: lowering.reads })
}

/// An error of the parser in one line, without the place in a text that is one line long.
fn say(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// Refuses what the parser would nest without a bound: it counts parentheses, and no signs or conditions.
fn check_nesting(text: &str) -> Result<(), String> {
    let (mut ifs, mut signs, mut quote, mut word) = (0, 0, None, String::new());
    let mut escaped = false;
    for one in text.chars().chain([' ']) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if one == '\\' => escaped = true,
            Some(open) if one == open => quote = None,
            Some(_) => {}
            None if one.is_alphanumeric() || one == '_' => word.push(one),
            None => {
                match &*word {
                    "" => {}
                    "not" => signs += 1,
                    "if" => (ifs, signs) = (ifs + 1, 0),
                    _ => signs = 0,
                }
                word.clear();
                match one {
                    '-' => signs += 1,
                    '\'' | '"' => (quote, signs) = (Some(one), 0),
                    one if one.is_whitespace() => {}
                    _ => signs = 0,
                }
            }
        }
        if ifs > IFS_MAX || signs > SIGNS_MAX {
            return Err(format!(
                "it holds more than {IFS_MAX} `if`s, or more than {SIGNS_MAX} signs in a row"
            ));
        }
    }
    Ok(())
}

struct Lowerer<'r> {
    roots: &'r [&'r str],
    reads: Vec<(usize, Vec<Box<str>>)>,
}

impl Lowerer<'_> {
    fn node(&mut self, expr: &Expr<'_>) -> Result<Node, String> {
        let (first, mut steps) = self.steps(expr)?;
        let node = self.first(first)?;
        steps.reverse();
        self.read(&node, &steps);
        if steps.is_empty() {
            return Ok(node);
        }
        Ok(Node::Steps(Box::new(node), steps.into()))
    }

    /// Goes down the left side of an expression, so that a long row of steps is no deep nest. The last step comes first.
    fn steps<'x, 's>(&mut self, mut expr: &'x Expr<'s>) -> Result<(&'x Expr<'s>, Vec<Step>), String> {
        let mut steps = Vec::new();
        loop {
            let (step, inner) = match expr {
                Expr::GetAttr(get) => (Step::Attr(get.name.into()), &get.expr),
                Expr::GetItem(get) => (Step::Item(self.node(&get.subscript_expr)?), &get.expr),
                Expr::Slice(slice) => {
                    let bounds =
                        [self.maybe(&slice.start)?, self.maybe(&slice.stop)?, self.maybe(&slice.step)?];
                    (Step::Slice(Box::new(bounds)), &slice.expr)
                }
                Expr::Filter(filter) => {
                    let known = BuiltinFilter::named(&without_space(filter.name))?;
                    let arguments = self.arguments(&filter.args)?;
                    known.takes(arguments.placed.len(), arguments.named.iter().map(|(name, _)| &**name))?;
                    check_named(known, &arguments)?;
                    let inner = filter.expr.as_ref().ok_or("a filter needs something before it")?;
                    (Step::Filter(known, arguments), inner)
                }
                Expr::Test(test) => {
                    let known = Test::named(&without_space(test.name))?;
                    let arguments = self.arguments(&test.args)?;
                    let (name, needed, given) = (known.name(), known.arguments(), arguments.placed.len());
                    if given != needed || !arguments.named.is_empty() {
                        return Err(format!("the test `{name}` takes {needed} arguments, not {given}"));
                    }
                    (Step::Test(known, arguments), &test.expr)
                }
                Expr::UnaryOp(unary) => match unary.op {
                    UnaryOpKind::Not => (Step::Not, &unary.expr),
                    UnaryOpKind::Neg => (Step::Negate, &unary.expr),
                },
                Expr::BinOp(binary) => {
                    let right = self.node(&binary.right)?;
                    let step = match binary.op {
                        BinOpKind::ScAnd => Step::And(right),
                        BinOpKind::ScOr => Step::Or(right),
                        other => Step::Operator(operator(other), right),
                    };
                    (step, &binary.left)
                }
                other => return Ok((other, steps)),
            };
            steps.push(step);
            expr = inner;
        }
    }

    /// What an expression begins with.
    fn first(&mut self, expr: &Expr<'_>) -> Result<Node, String> {
        Ok(match expr {
            Expr::Var(var) => match self.roots.iter().position(|root| *root == var.id) {
                Some(at) => Node::Root(at),
                None => return Err(format!("unknown name `{}`. Known: {}", var.id, self.roots.join(", "))),
            },
            Expr::Const(constant) => literal(constant)?,
            Expr::List(ast) => Node::List(self.nodes(&ast.items)?),
            // JSON has no tuples: one is a list.
            Expr::Tuple(ast) => Node::List(self.nodes(&ast.items)?),
            Expr::Map(map) => {
                let (keys, values) = (self.nodes(&map.keys)?, self.nodes(&map.values)?);
                Node::Map(keys.into_iter().zip(values).collect())
            }
            Expr::IfExpr(choice) => Node::If(Box::new((
                self.node(&choice.test_expr)?,
                self.node(&choice.true_expr)?,
                self.maybe(&choice.false_expr)?,
            ))),
            Expr::Compare(compare) => {
                let first = self.node(&compare.expr)?;
                let other = |other: &ast::CompareOp<'_>| Ok((comparison(other.op), self.node(&other.expr)?));
                Node::Compare(Box::new(first), compare.ops.iter().map(other).collect::<Result<_, String>>()?)
            }
            Expr::Call(call) => {
                // `now()` is told as a name that there is not.
                if let Expr::Var(_) = &call.expr {
                    self.first(&call.expr)?;
                }
                return Err("there are no functions to call; there are filters: `data.name | upper`".into());
            }
            _ => return Err("it holds something that no expression of a rule may hold".into()),
        })
    }

    /// Notes which field of the event is read.
    fn read(&mut self, node: &Node, steps: &[Step]) {
        if let Node::Root(root) = node {
            let name = |step: &Step| if let Step::Attr(name) = step { Some(name.clone()) } else { None };
            let names: Vec<Box<str>> = steps.iter().map_while(name).collect();
            self.reads.push((*root, names));
        }
    }

    fn nodes(&mut self, exprs: &[Expr<'_>]) -> Result<Box<[Node]>, String> {
        exprs.iter().map(|expr| self.node(expr)).collect()
    }

    fn maybe(&mut self, expr: &Option<Expr<'_>>) -> Result<Option<Node>, String> {
        expr.as_ref().map(|expr| self.node(expr)).transpose()
    }

    fn arguments(&mut self, given: &[CallArg<'_>]) -> Result<Arguments, String> {
        let (mut placed, mut named) = (Vec::new(), Vec::new());
        for argument in given {
            match argument {
                CallArg::Pos(expr) => placed.push(self.node(expr)?),
                CallArg::Kwarg(name, expr) => named.push(((*name).into(), self.node(expr)?)),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                    return Err("arguments are written one by one, without `*`".into());
                }
            }
        }
        Ok(Arguments { placed: placed.into(), named: named.into() })
    }
}

/// `select` and its like name a test, and `map` names a filter. Where the name is a literal, it is checked now.
fn check_named(filter: BuiltinFilter, arguments: &Arguments) -> Result<(), String> {
    let name = |place: usize| match arguments.placed.get(place) {
        Some(Node::Text(name)) => Some(&**name),
        _ => None,
    };
    match filter {
        BuiltinFilter::Select | BuiltinFilter::Reject => {
            name(0).map_or(Ok(()), |name| Test::named(name).map(drop))
        }
        BuiltinFilter::SelectAttr | BuiltinFilter::RejectAttr => {
            name(1).map_or(Ok(()), |name| Test::named(name).map(drop))
        }
        BuiltinFilter::Map => name(0).map_or(Ok(()), |name| BuiltinFilter::named(name).map(drop)),
        _ => Ok(()),
    }
}

/// Between the words of a name there may be white space.
fn without_space(name: &str) -> String {
    name.chars().filter(|one| !one.is_ascii_whitespace()).collect()
}

fn literal(constant: &ast::Const) -> Result<Node, String> {
    let value = &constant.value;
    Ok(match value.kind() {
        ValueKind::None => Node::None,
        ValueKind::Bool => Node::Bool(value.is_true()),
        ValueKind::String => Node::Text(value.as_str().unwrap_or_default().into()),
        ValueKind::Number if value.is_integer() => match i128::try_from(value.clone()) {
            Ok(whole) => Node::Int(whole),
            Err(_) => return Err(format!("{value} is too large a number")),
        },
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) => Node::Float(number),
            Err(_) => return Err(format!("{value} is no number")),
        },
        other => return Err(format!("there is no literal of type {other}")),
    })
}

fn operator(kind: BinOpKind) -> Operator {
    match kind {
        BinOpKind::Eq => Operator::Equal,
        BinOpKind::Ne => Operator::NotEqual,
        BinOpKind::Lt => Operator::Less,
        BinOpKind::Lte => Operator::LessOrEqual,
        BinOpKind::Gt => Operator::Greater,
        BinOpKind::Gte => Operator::GreaterOrEqual,
        BinOpKind::Add => Operator::Add,
        BinOpKind::Sub => Operator::Subtract,
        BinOpKind::Mul => Operator::Multiply,
        BinOpKind::Div => Operator::Divide,
        BinOpKind::FloorDiv => Operator::DivideWhole,
        BinOpKind::Rem => Operator::Remainder,
        BinOpKind::Pow => Operator::Power,
        BinOpKind::Concat => Operator::Join,
        BinOpKind::In => Operator::In,
        BinOpKind::ScAnd | BinOpKind::ScOr => Operator::Equal,
    }
}

fn comparison(kind: CompareOpKind) -> Operator {
    match kind {
        CompareOpKind::Eq => Operator::Equal,
        CompareOpKind::Ne => Operator::NotEqual,
        CompareOpKind::Lt => Operator::Less,
        CompareOpKind::Lte => Operator::LessOrEqual,
        CompareOpKind::Gt => Operator::Greater,
        CompareOpKind::Gte => Operator::GreaterOrEqual,
        CompareOpKind::In => Operator::In,
        CompareOpKind::NotIn => Operator::NotIn,
    }
}
