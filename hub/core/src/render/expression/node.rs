//! An expression, ready to be evaluated.

use super::condition::Test;
use super::filters::BuiltinFilter;
use super::operate::Operator;

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    /// One of the names that an expression may begin with, by its place among them.
    Root(usize),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Box<str>),
    List(Box<[Node]>),
    Map(Box<[(Node, Node)]>),
    /// A condition, what holds if it is true, and what holds else.
    If(Box<(Node, Node, Option<Node>)>),
    /// `a < b < c`.
    Compare(Box<Node>, Box<[(Operator, Node)]>),
    /// A value, and what is made of it step by step. A long row of operators is a list, and no deep nest.
    Steps(Box<Node>, Box<[Step]>),
}

/// One thing that is done with a value.
#[derive(Debug)]
pub(super) enum Step {
    Attr(Box<str>),
    Item(Node),
    Slice(Box<[Option<Node>; 3]>),
    Filter(BuiltinFilter, Arguments),
    Test(Test, Arguments),
    Operator(Operator, Node),
    And(Node),
    Or(Node),
    Not,
    Negate,
}

/// The arguments of a filter or a test.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) placed: Box<[Node]>,
    pub(super) named: Box<[(Box<str>, Node)]>,
}
