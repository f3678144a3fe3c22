//! Types, bounds and signatures of rustdoc's JSON as text. Paths are whole, so that two types of one name differ.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) struct Text<'j> {
    pub(super) json: &'j Value,
    /// The path by which users name an item of the crate.
    pub(super) public: BTreeMap<u64, String>,
}

/// The items of a list; none if it is not a list.
pub(super) fn items_of(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

pub(super) fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn joined<'v>(list: &'v Value, between: &str, text: impl FnMut(&'v Value) -> String) -> String {
    items_of(list).map(text).collect::<Vec<_>>().join(between)
}

impl Text<'_> {
    /// The path of an item: as its users write it, or where it is defined if it is another crate's.
    pub(super) fn name(&self, id: &u64) -> String {
        let defined =
            || joined(&self.json["paths"][id.to_string()]["path"], "::", |part| text_of(part).to_owned());
        self.public.get(id).cloned().unwrap_or_else(defined)
    }

    pub(super) fn path(&self, path: &Value) -> String {
        let name = path["id"].as_u64().map(|id| self.name(&id)).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| text_of(&path["path"]).to_owned()) + &self.args(&path["args"])
    }

    fn args(&self, args: &Value) -> String {
        if let Some(list) = args.get("angle_bracketed") {
            let constraint = |of: &Value| {
                let name = format!("{}{}", text_of(&of["name"]), self.args(&of["args"]));
                match of["binding"].get("equality") {
                    Some(term) => format!("{name} = {}", self.term(term)),
                    None => format!("{name}: {}", self.bounds(&of["binding"]["constraint"])),
                }
            };
            let args = items_of(&list["args"]).map(|arg| self.term(arg));
            let all: Vec<_> = args.chain(items_of(&list["constraints"]).map(constraint)).collect();
            return if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) };
        }
        args.get("parenthesized").map_or_else(String::new, |call| {
            format!("({}){}", joined(&call["inputs"], ", ", |of| self.of(of)), self.output(&call["output"]))
        })
    }

    /// What stands between angle brackets: a lifetime, a type, a constant, or `_`.
    fn term(&self, term: &Value) -> String {
        if let Some(lifetime) = term.get("lifetime") {
            return text_of(lifetime).to_owned();
        }
        match (term.get("type"), term.get("const").or(term.get("constant"))) {
            (Some(of), _) => self.of(of),
            (_, Some(constant)) => text_of(&constant["expr"]).to_owned(),
            _ => "_".to_owned(),
        }
    }

    fn output(&self, output: &Value) -> String {
        if output.is_null() { String::new() } else { format!(" -> {}", self.of(output)) }
    }

    /// A type.
    pub(super) fn of(&self, of: &Value) -> String {
        let Some((kind, inner)) = of.as_object().and_then(|of| of.iter().next()) else {
            return "_".to_owned();
        };
        match kind.as_str() {
            "generic" | "primitive" => text_of(inner).to_owned(),
            "resolved_path" => self.path(inner),
            "tuple" => format!("({})", joined(inner, ", ", |of| self.of(of))),
            "slice" => format!("[{}]", self.of(inner)),
            "array" => format!("[{}; {}]", self.of(&inner["type"]), text_of(&inner["len"])),
            "impl_trait" => format!("impl {}", self.bounds(inner)),
            "borrowed_ref" => {
                let lifetime = inner["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
                let mutable = if inner["is_mutable"] == true { "mut " } else { "" };
                format!("&{lifetime}{mutable}{}", self.of(&inner["type"]))
            }
            "raw_pointer" => {
                let mutable = if inner["is_mutable"] == true { "mut" } else { "const" };
                format!("*{mutable} {}", self.of(&inner["type"]))
            }
            "dyn_trait" => {
                let traits = joined(&inner["traits"], " + ", |of| {
                    self.higher(&of["generic_params"]) + &self.path(&of["trait"])
                });
                let lifetime =
                    inner["lifetime"].as_str().map(|name| format!(" + {name}")).unwrap_or_default();
                format!("dyn {traits}{lifetime}")
            }
            "function_pointer" => {
                let inputs = joined(&inner["sig"]["inputs"], ", ", |input| self.of(&input[1]));
                format!(
                    "{}fn({inputs}){}",
                    self.higher(&inner["generic_params"]),
                    self.output(&inner["sig"]["output"])
                )
            }
            "qualified_path" => {
                let (own, name) = (self.of(&inner["self_type"]), text_of(&inner["name"]));
                let args = self.args(&inner["args"]);
                match inner["trait"]
                    .as_object()
                    .map(|_| self.path(&inner["trait"]))
                    .filter(|path| !path.is_empty())
                {
                    Some(of) => format!("<{own} as {of}>::{name}{args}"),
                    None => format!("{own}::{name}{args}"),
                }
            }
            _ => "_".to_owned(),
        }
    }

    fn higher(&self, params: &Value) -> String {
        let names = joined(params, ", ", |param| text_of(&param["name"]).to_owned());
        if names.is_empty() { names } else { format!("for<{names}> ") }
    }

    pub(super) fn bounds(&self, bounds: &Value) -> String {
        joined(bounds, " + ", |bound| {
            if let Some(of) = bound.get("trait_bound") {
                let maybe = if text_of(&of["modifier"]) == "maybe" { "?" } else { "" };
                return format!("{}{maybe}{}", self.higher(&of["generic_params"]), self.path(&of["trait"]));
            }
            match (bound.get("outlives"), bound.get("use")) {
                (Some(lifetime), _) => text_of(lifetime).to_owned(),
                (_, Some(used)) => format!("use<{}>", joined(used, ", ", captured)),
                _ => "_".to_owned(),
            }
        })
    }

    /// Parameters in angle brackets. Those that stand for an `impl Trait` among the arguments are shown there.
    pub(super) fn params(&self, generics: &Value) -> String {
        let shown =
            items_of(&generics["params"]).filter(|param| param["kind"]["type"]["is_synthetic"] != true);
        let params: Vec<_> = shown.map(|param| self.param(param)).collect();
        if params.is_empty() { String::new() } else { format!("<{}>", params.join(", ")) }
    }

    fn param(&self, param: &Value) -> String {
        let (name, kind) = (text_of(&param["name"]), &param["kind"]);
        let with = |mark: &str, text: String| if text.is_empty() { text } else { format!("{mark}{text}") };
        if let Some(of) = kind.get("type") {
            let default = if of["default"].is_null() { String::new() } else { self.of(&of["default"]) };
            return format!("{name}{}{}", with(": ", self.bounds(&of["bounds"])), with(" = ", default));
        }
        match kind.get("const") {
            Some(of) => format!(
                "const {name}: {}{}",
                self.of(&of["type"]),
                with(" = ", text_of(&of["default"]).to_owned())
            ),
            None => {
                let longer = joined(&kind["lifetime"]["outlives"], " + ", |name| text_of(name).to_owned());
                format!("{name}{}", with(": ", longer))
            }
        }
    }

    pub(super) fn predicates(&self, generics: &Value) -> String {
        let all = joined(&generics["where_predicates"], ", ", |predicate| {
            if let Some(of) = predicate.get("bound_predicate") {
                let higher = self.higher(&of["generic_params"]);
                return format!("{higher}{}: {}", self.of(&of["type"]), self.bounds(&of["bounds"]));
            }
            match (predicate.get("lifetime_predicate"), predicate.get("eq_predicate")) {
                (Some(of), _) => {
                    let longer = joined(&of["outlives"], " + ", |name| text_of(name).to_owned());
                    format!("{}: {longer}", text_of(&of["lifetime"]))
                }
                (_, Some(of)) => format!("{} = {}", self.of(&of["lhs"]), self.term(&of["rhs"])),
                _ => "_".to_owned(),
            }
        });
        if all.is_empty() { all } else { format!(" where {all}") }
    }

    /// From `const` or `async` to the last bound.
    pub(super) fn function(&self, function: &Value, path: &str) -> String {
        let (header, sig, generics) = (&function["header"], &function["sig"], &function["generics"]);
        let words = [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")];
        let words: String =
            words.iter().filter(|(key, _)| header[*key] == true).map(|(_, word)| *word).collect();
        let input = |input: &Value| format!("{}: {}", text_of(&input[0]), self.of(&input[1]));
        let inputs = joined(&sig["inputs"], ", ", input);
        let (params, bounds) = (self.params(generics), self.predicates(generics));
        format!("{words}fn {path}{params}({inputs}){}{bounds}", self.output(&sig["output"]))
    }
}

/// What an `impl Trait` holds on to: a lifetime, or a parameter by its name.
fn captured(used: &Value) -> String {
    let name = used.as_object().and_then(|used| used.values().next()).unwrap_or(used);
    text_of(name).to_owned()
}
