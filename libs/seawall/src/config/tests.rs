//! Values, sections and what they say when they are wrong.
