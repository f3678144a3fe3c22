//! Guards and bases by name, and which of them build on which.

use std::collections::HashMap;

use super::Place;
use super::dialect::flat;
use super::layer::{Layer, Report, unknown_name};
use super::tree::join;
use super::value::Wrong;

/// Longer chains are a mistake, and two bases that each extend two others double with every step.
pub(super) const LAYERS_MAX: usize = 100;

/// Everything that the files say, before anything is put together.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) configs: Vec<Named>,
    pub(super) guards: Vec<Named>,
}

/// A guard or a base, with one layer for each file that says something about it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    /// Like `guards.payments`; empty for a policy that stands alone.
    pub(super) path: String,
    pub(super) place: Place,
    /// What another format says about it; it lies under its bases too, so that a guard in our own words is over it.
    pub(super) ground: Option<Layer>,
    pub(super) layers: Vec<Layer>,
}

impl Named {
    /// The bases that it names; a later file replaces what an earlier one says.
    fn extends(&self) -> &[(String, Place)] {
        self.layers.iter().rev().find_map(|layer| layer.extends.as_deref()).unwrap_or_default()
    }
}

/// The entry of this name, which is made if it is not there yet.
pub(super) fn entry<'a>(all: &'a mut Vec<Named>, section: &str, name: &str, place: &Place) -> &'a mut Named {
    let at = all.iter().position(|named| named.name == name).unwrap_or_else(|| {
        let path = join(section, name);
        all.push(Named { name: name.into(), path, place: place.clone(), ground: None, layers: Vec::new() });
        all.len() - 1
    });
    &mut all[at]
}

/// The bases of a book, found by name.
pub(super) struct Bases<'a> {
    configs: &'a [Named],
    index: HashMap<&'a str, usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// On the way that is being followed.
    Open,
    Done,
}

impl<'a> Bases<'a> {
    /// Says which names lead nowhere or in a circle, each once.
    pub(super) fn of(book: &'a Book, report: &mut Report) -> Self {
        let index = book.configs.iter().enumerate().map(|(at, named)| (named.name.as_str(), at)).collect();
        let bases = Bases { configs: &book.configs, index };
        for named in book.configs.iter().chain(&book.guards) {
            for (name, place) in named.extends().iter().filter(|(name, _)| bases.find(name).is_none()) {
                let known = book.configs.iter().map(|base| base.name.as_str());
                report.wrong(place, join(&named.path, "extends"), unknown_name("base", name, known));
            }
        }
        let mut marks = vec![Mark::New; book.configs.len()];
        for at in 0..book.configs.len() {
            bases.follow(at, &mut marks, &mut Vec::new(), report);
        }
        bases
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Follows what a base extends, and reports a way that comes back to itself. The trail holds the bases on the way,
    /// each with the place where it names the next.
    fn follow(
        &self,
        at: usize,
        marks: &mut [Mark],
        trail: &mut Vec<(usize, &'a Place)>,
        report: &mut Report,
    ) {
        // What is cut off here is too long for any guard, which is said where the guard is.
        if marks[at] == Mark::Done || trail.len() > LAYERS_MAX {
            return;
        }
        marks[at] = Mark::Open;
        for (name, place) in self.configs[at].extends() {
            let Some(next) = self.find(name) else { continue };
            trail.push((at, place));
            if marks[next] == Mark::Open {
                let circle: Vec<_> = trail.iter().skip_while(|(base, _)| *base != next).collect();
                let names =
                    circle.iter().map(|(base, _)| self.configs[*base].name.as_str()).chain([name.as_str()]);
                let reason =
                    format!("these bases extend each other: {}", names.collect::<Vec<_>>().join(" → "));
                let place = circle.first().map_or(place, |(_, place)| place);
                let path = join(&self.configs[next].path, "extends");
                report.wrong(place, path, Wrong::new(reason, "take one `extends` out"));
            } else {
                self.follow(next, marks, trail, report);
            }
            trail.pop();
        }
        marks[at] = Mark::Done;
    }

    /// The layers of a guard from the lowest to the highest.
    pub(super) fn stack(&self, named: &'a Named, report: &mut Report) -> Vec<&'a Layer> {
        let mut stack: Vec<&Layer> = named.ground.iter().collect();
        if !self.climb(named, &mut Vec::new(), &mut stack) {
            let reason = format!("more than {LAYERS_MAX} bases lie under it");
            report.wrong(&named.place, named.path.clone(), Wrong::new(reason, "extend fewer of them"));
        }
        if let Some(item) = flat::lonely_timeout(&stack)
            && let Some(place) = item.origin.place()
        {
            let remedy = format!("write `attempt_timeout: {0}` or `call_timeout: {0}`", item.value);
            let wrong = Wrong::new("alone it could mean either timeout", remedy);
            report.wrong(place, join(&named.path, "timeout"), wrong);
        }
        stack
    }

    /// Says whether everything fits.
    fn climb(&self, named: &'a Named, trail: &mut Vec<usize>, stack: &mut Vec<&'a Layer>) -> bool {
        let mut fits = true;
        for base in named.extends().iter().filter_map(|(name, _)| self.find(name)) {
            // Circles have been reported.
            if trail.contains(&base) {
                continue;
            }
            trail.push(base);
            let room = stack.len() < LAYERS_MAX && trail.len() < LAYERS_MAX;
            fits = fits && room && self.climb(&self.configs[base], trail, stack);
            trail.pop();
        }
        stack.extend(&named.layers);
        fits
    }
}
