//! Walks through the modules of a crate, and writes a line for each item that its users can name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::render::{Text, items_of, text_of};

/// Every line, by the path of what it belongs to.
pub(super) fn lines(json: &Value) -> Vec<String> {
    let mut walk =
        Walk { json, text: Text { json, public: BTreeMap::new() }, reexports: Vec::new(), lines: Vec::new() };
    let root = &json["root"];
    let name = text_of(&walk.item(root)["name"]).to_owned();
    // Twice: the first walk finds under which path each item is known, and the second writes it down.
    walk.module(root, &name);
    walk.lines.clear();
    walk.reexports.clear();
    walk.module(root, &name);
    let mut lines = std::mem::take(&mut walk.lines);
    lines.extend(
        walk.reexports
            .iter()
            .map(|(path, id)| (path.clone(), format!("pub use {path} = {}", walk.text.name(id)))),
    );
    lines.sort();
    lines.dedup();
    lines.into_iter().map(|(_, line)| line).collect()
}

struct Walk<'j> {
    json: &'j Value,
    text: Text<'j>,
    reexports: Vec<(String, u64)>,
    lines: Vec<(String, String)>,
}

impl<'j> Walk<'j> {
    fn item(&self, id: &Value) -> &'j Value {
        &self.json["index"][id.to_string()]
    }

    fn line(&mut self, path: &str, line: String) {
        self.lines.push((path.to_owned(), line));
    }

    /// Modules first, so that an item is known by the module that is about it, and what stands above is a re-export.
    fn module(&mut self, id: &Value, path: &str) {
        self.line(path, format!("pub mod {path}"));
        let items = items_of(&self.item(id)["inner"]["module"]["items"]);
        let is_module = |id: &&Value| self.item(id)["inner"].get("module").is_some();
        let (modules, others): (Vec<_>, Vec<_>) = items.partition(is_module);
        for id in modules.into_iter().chain(others) {
            self.named(id, path);
        }
    }

    fn named(&mut self, id: &Value, parent: &str) {
        let item = self.item(id);
        let (name, inner) = (text_of(&item["name"]), &item["inner"]);
        if inner.get("module").is_some() {
            self.module(id, &format!("{parent}::{name}"));
        } else if let Some(import) = inner.get("use") {
            self.import(import, parent);
        } else {
            self.declared(id, &format!("{parent}::{name}"));
        }
    }

    fn import(&mut self, import: &'j Value, parent: &str) {
        let target = self.item(&import["id"]);
        let path = format!("{parent}::{}", text_of(&import["name"]));
        match target.get("inner") {
            Some(inner) if import["is_glob"] == true => {
                items_of(&inner["module"]["items"]).for_each(|id| self.named(id, parent));
            }
            Some(inner) if inner.get("module").is_some() => self.module(&import["id"], &path),
            Some(_) => self.declared(&import["id"], &path),
            None => self.line(&path, format!("pub use {path} = {}", text_of(&import["source"]))),
        }
    }

    fn declared(&mut self, id: &Value, path: &str) {
        let key = id.as_u64().unwrap_or_default();
        let known = self.text.public.entry(key).or_insert_with(|| path.to_owned());
        if known != path {
            self.reexports.push((path.to_owned(), key));
            return;
        }
        let item = self.item(id);
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else {
            return;
        };
        let generics = &inner["generics"];
        let (params, bounds) = (self.text.params(generics), self.text.predicates(generics));
        let growing = if is_growing(item) { "#[non_exhaustive] " } else { "" };
        match kind.as_str() {
            "struct" | "enum" => {
                self.line(path, format!("{growing}pub {kind} {path}{params}{bounds}"));
                self.parts(inner, path);
                items_of(&inner["impls"]).for_each(|id| self.block(id, path));
            }
            "trait" => {
                let supers = self.text.bounds(&inner["bounds"]);
                let supers = if supers.is_empty() { supers } else { format!(": {supers}") };
                self.line(path, format!("pub trait {path}{params}{supers}{bounds}"));
                items_of(&inner["items"]).for_each(|id| self.member(id, path));
                items_of(&inner["implementations"]).for_each(|id| self.block(id, path));
            }
            "function" => self.line(path, format!("pub {}", self.text.function(inner, path))),
            "constant" => self.line(path, format!("pub const {path}: {}", self.text.of(&inner["type"]))),
            "static" => self.line(path, format!("pub static {path}: {}", self.text.of(&inner["type"]))),
            "type_alias" => {
                self.line(path, format!("pub type {path}{params} = {}", self.text.of(&inner["type"])));
            }
            // Macros have no types; their name is what users depend on.
            _ => self.line(path, format!("pub {kind} {path}")),
        }
    }

    /// Fields of a struct, variants of an enum.
    fn parts(&mut self, inner: &'j Value, path: &str) {
        items_of(&inner["kind"]["plain"]["fields"]).for_each(|id| self.field(id, path));
        items_of(&inner["kind"]["tuple"]).for_each(|id| self.field(id, path));
        for id in items_of(&inner["variants"]) {
            let variant = self.item(id);
            let name = format!("{path}::{}", text_of(&variant["name"]));
            let growing = if is_growing(variant) { "#[non_exhaustive] " } else { "" };
            self.line(path, format!("{growing}variant {name}"));
            let kind = &variant["inner"]["variant"]["kind"];
            items_of(&kind["tuple"])
                .chain(items_of(&kind["struct"]["fields"]))
                .for_each(|id| self.field(id, &name));
        }
    }

    /// A private field of a tuple has no id, and a private field with a name is not listed.
    fn field(&mut self, id: &Value, path: &str) {
        let item = self.item(id);
        if let Some(of) = item["inner"].get("struct_field") {
            self.line(path, format!("field {path}::{}: {}", text_of(&item["name"]), self.text.of(of)));
        }
    }

    /// An `impl`: its members if it is the type's own, else the trait. Of what the compiler finds out, `Send`, `Sync` and
    /// `Unpin` are what users rely on. Impls for every type say nothing about this one.
    fn block(&mut self, id: &Value, path: &str) {
        let block = &self.item(id)["inner"]["impl"];
        if block.is_null() || !block["blanket_impl"].is_null() {
            return;
        }
        if block["trait"].is_null() {
            items_of(&block["items"]).for_each(|id| self.member(id, path));
            return;
        }
        let name = self.text.path(&block["trait"]);
        let by_compiler = block["is_synthetic"] == true;
        let wanted =
            ["core::marker::Send", "core::marker::Sync", "core::marker::Unpin"].contains(&name.as_str());
        let internal = name.starts_with("core::marker::StructuralPartialEq") || name.contains("sealed::");
        if (by_compiler && !wanted) || internal {
            return;
        }
        let generics = &block["generics"];
        let not = if block["is_negative"] == true { "!" } else { "" };
        let line = format!(
            "impl{} {not}{name} for {}{}",
            self.text.params(generics),
            self.text.of(&block["for"]),
            self.text.predicates(generics)
        );
        self.line(path, line);
    }

    fn member(&mut self, id: &Value, path: &str) {
        let item = self.item(id);
        let name = format!("{path}::{}", text_of(&item["name"]));
        let inner = &item["inner"];
        if let Some(function) = inner.get("function") {
            self.line(path, format!("pub {}", self.text.function(function, &name)));
        } else if let Some(constant) = inner.get("assoc_const") {
            self.line(path, format!("pub const {name}: {}", self.text.of(&constant["type"])));
        } else if let Some(of) = inner.get("assoc_type") {
            let bounds = self.text.bounds(&of["bounds"]);
            let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
            self.line(path, format!("type {name}{bounds}"));
        }
    }
}

fn is_growing(item: &Value) -> bool {
    items_of(&item["attrs"]).any(|attribute| attribute.to_string().contains("non_exhaustive"))
}
