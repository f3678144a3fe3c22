//! Marks that steps leave beside their effects.

/// What a step finds when it marks itself in the transaction of its own effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "only the first call may take effect"]
pub enum StepMark {
    /// Nobody was here before: take effect, and commit the mark with it.
    First,
    /// The step took effect already: succeed without doing anything.
    Repeated,
    /// The step was compensated: this call comes too late, and must not take effect.
    Refused,
}

/// What a compensation finds when it marks its step in the transaction of its own effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "there may be something to undo"]
pub enum CompensationMark {
    /// The step took effect: undo it, and commit the mark with it.
    Undo,
    /// The step never took effect: succeed. From now on a late call of it is refused.
    NothingToUndo,
    /// The step was compensated already: succeed without doing anything.
    Repeated,
}
