//! The shape of a wire type: its derived schema, compiled once for reading.
//!
//! The schema is the only definition. What it says in JSON is taken apart here, so that a request is read without looking into
//! the schema again.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The values that a field accepts.
pub(super) enum FieldShape {
    /// Any JSON value.
    Any,
    /// A string. A format names the parser that it must pass. If it is empty and must not be, the hint says what to do (`x-empty`).
    Text { format: Option<String>, is_filled: bool, longest: Option<u64>, hint: Option<String> },
    /// One of these words.
    Words(Vec<String>),
    /// An integer within these bounds.
    Integer { least: u64, most: u64 },
    /// Any JSON number.
    Number,
    /// True or false.
    Switch,
    /// A list with items of one shape. If it is empty and must not be, the hint says what to do (`x-empty`).
    List { of: Box<FieldShape>, is_filled: bool, longest: Option<u64>, is_secret: bool, hint: Option<String> },
    /// An object with any names and values of one shape.
    Map(Box<FieldShape>),
    /// An object with these fields.
    Object(Vec<ShapeField>),
    /// An object whose tag decides its other fields.
    Tagged { tag: String, cases: Vec<(String, Vec<ShapeField>)>, read_only: Vec<String> },
    /// One of several shapes, which differ in the JSON type of their values.
    Either(Vec<FieldShape>),
}

impl FieldShape {
    /// True if the value has the JSON type of this shape.
    pub(super) fn has_type_of(&self, value: &Value) -> bool {
        match self {
            FieldShape::Any => true,
            FieldShape::Text { .. } | FieldShape::Words(_) => value.is_string(),
            FieldShape::Integer { .. } | FieldShape::Number => value.is_number(),
            FieldShape::Switch => value.is_boolean(),
            FieldShape::List { .. } => value.is_array(),
            FieldShape::Map(_) | FieldShape::Object(_) | FieldShape::Tagged { .. } => value.is_object(),
            FieldShape::Either(cases) => cases.iter().any(|case| case.has_type_of(value)),
        }
    }

    /// The JSON type of this shape, for people.
    pub(super) fn type_name(&self) -> String {
        let of_what = |of: &FieldShape| match of {
            FieldShape::Text { .. } | FieldShape::Words(_) => " of strings",
            _ => "",
        };
        match self {
            FieldShape::Any => "a value".into(),
            FieldShape::Text { .. } | FieldShape::Words(_) => "a string".into(),
            FieldShape::Integer { .. } => "an integer".into(),
            FieldShape::Number => "a number".into(),
            FieldShape::Switch => "true or false".into(),
            FieldShape::List { of, .. } => format!("a list{}", of_what(of)),
            FieldShape::Map(of) => format!("an object{}", of_what(of)),
            FieldShape::Object(_) | FieldShape::Tagged { .. } => "an object".into(),
            FieldShape::Either(cases) => {
                cases.iter().map(FieldShape::type_name).collect::<Vec<_>>().join(" or ")
            }
        }
    }
}

/// A field of an object.
pub(super) struct ShapeField {
    pub(super) name: String,
    pub(super) node: FieldShape,
    pub(super) is_required: bool,
    /// True if null does not mean the same as an omitted field (`x-null: false`).
    pub(super) refuses_null: bool,
    /// True if null is a value of its own (`x-null: true`).
    pub(super) keeps_null: bool,
    /// The rest of the reason if it is missing (`x-required`).
    pub(super) hint: Option<String>,
    /// True if a change is merged into the field and does not replace it (`x-merge: deep`).
    pub(super) is_merged: bool,
}

/// The shape of a request body.
pub(super) struct Shape {
    pub(super) node: FieldShape,
    /// The fields that are returned and can't be written. Written back, they are ignored.
    pub(super) read_only: Vec<String>,
    /// The schema of what is read.
    read: Value,
    /// The schema of what is written.
    written: Value,
}

/// The shape of a specification `S` that is returned as a view `V`.
pub(super) fn shape_of<S: JsonSchema + 'static, V: JsonSchema + 'static>() -> &'static Shape {
    static SHAPES: LazyLock<RwLock<HashMap<(TypeId, TypeId), &'static Shape>>> =
        LazyLock::new(RwLock::default);
    let types = (TypeId::of::<S>(), TypeId::of::<V>());
    let known = SHAPES.read().unwrap_or_else(PoisonError::into_inner).get(&types).copied();
    known.unwrap_or_else(|| {
        let mut all = SHAPES.write().unwrap_or_else(PoisonError::into_inner);
        // There are as many as there are types, so none of them is ever dropped.
        all.entry(types).or_insert_with(|| Box::leak(Box::new(Shape::new::<S, V>())))
    })
}

/// The schemas of what a type reads and of what it writes, without references.
pub(crate) fn schemas_of<T: JsonSchema + 'static>() -> (&'static Value, &'static Value) {
    let shape = shape_of::<T, T>();
    (&shape.read, &shape.written)
}

impl Shape {
    fn new<S: JsonSchema, V: JsonSchema>() -> Self {
        let (read, written) = (request_schema::<S>(), response_schema::<S>());
        let node = node(&read, &written);
        let view = response_schema::<V>();
        let ignored = read["x-ignored"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let known: Vec<&str> = match &node {
            FieldShape::Object(fields) => fields.iter().map(|field| &*field.name).collect(),
            FieldShape::Tagged { cases, .. } => {
                cases.iter().flat_map(|(_, fields)| fields).map(|field| &*field.name).collect()
            }
            _ => Vec::new(),
        };
        let shown = std::iter::once(&view).chain(view["oneOf"].as_array().into_iter().flatten());
        let read_only = shown.flat_map(names).chain(ignored).filter(|name| !known.contains(name));
        let read_only = read_only.map(ToOwned::to_owned).collect();
        Shape { node, read_only, read, written }
    }
}

/// The schema of what a type reads, without references.
fn request_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what a type writes, without references.
pub(super) fn response_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().into();
    spread(&mut schema);
    schema
}

/// Gives each case of a flattened enum the fields that stand beside it.
pub(super) fn spread(schema: &mut Value) {
    let Some(words) = schema.as_object_mut().filter(|words| words.contains_key("properties")) else { return };
    let Some(Value::Array(mut cases)) = words.remove("oneOf") else { return };
    let (fields, required) = (words.remove("properties"), words.remove("required"));
    for case in &mut cases {
        for (name, field) in fields.as_ref().and_then(Value::as_object).into_iter().flatten() {
            case["properties"][name] = field.clone();
        }
        let own = case["required"].as_array().cloned().unwrap_or_default();
        let common = required.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        case["required"] = common.into_iter().chain(own).collect();
    }
    words.remove("type");
    words.insert("oneOf".into(), cases.into());
}

/// The names of the fields, in the order of their declaration where the schema keeps it.
///
/// A JSON object has no order, but the list of required fields has one, and what is written is required.
fn names(written: &Value) -> Vec<&str> {
    let required = written["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut names: Vec<&str> = required.collect();
    for name in written["properties"].as_object().into_iter().flat_map(|all| all.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// A schema without the case that it may be null.
fn without_null(schema: &Value) -> &Value {
    let cases = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice);
    match cases {
        [inner, null] if null["type"] == "null" => inner,
        _ => schema,
    }
}

fn node(read: &Value, written: &Value) -> FieldShape {
    let (read, written) = (without_null(read), without_null(written));
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    if let Some(cases) = read["oneOf"].as_array() {
        let words: Vec<String> = cases.iter().filter_map(|case| text(&case["const"])).collect();
        return if words.len() == cases.len() {
            FieldShape::Words(words)
        } else {
            tagged(cases, &written["oneOf"])
        };
    }
    if let Some(words) = read["enum"].as_array() {
        return FieldShape::Words(words.iter().filter_map(text).collect());
    }
    if let Some(word) = text(&read["const"]) {
        return FieldShape::Words(vec![word]);
    }
    let kinds = read["type"].as_array().map_or(std::slice::from_ref(&read["type"]), Vec::as_slice);
    let is_filled =
        |least: &str| read[least].as_u64().is_some_and(|least| least > 0) || read["x-empty"].is_string();
    match kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null") {
        Some("string") => FieldShape::Text {
            format: text(&read["format"]),
            is_filled: is_filled("minLength"),
            longest: read["maxLength"].as_u64(),
            hint: text(&read["x-empty"]),
        },
        Some("integer") => FieldShape::Integer {
            least: read["minimum"].as_u64().unwrap_or(0),
            most: read["maximum"].as_u64().unwrap_or(match read["format"].as_str() {
                Some("uint8") => u8::MAX.into(),
                Some("uint16") => u16::MAX.into(),
                Some("uint32") => u32::MAX.into(),
                _ => u64::MAX,
            }),
        },
        Some("number") => FieldShape::Number,
        Some("boolean") => FieldShape::Switch,
        Some("array") => FieldShape::List {
            of: Box::new(node(&read["items"], &written["items"])),
            is_filled: is_filled("minItems"),
            longest: read["maxItems"].as_u64(),
            is_secret: read["writeOnly"] == true,
            hint: text(&read["x-empty"]),
        },
        Some("object") if read["properties"].is_object() || read["additionalProperties"].is_null() => {
            FieldShape::Object(fields(read, written))
        }
        Some("object") => {
            FieldShape::Map(Box::new(node(&read["additionalProperties"], &written["additionalProperties"])))
        }
        _ => FieldShape::Any,
    }
}

fn tagged(cases: &[Value], written: &Value) -> FieldShape {
    let tag_of = |case: &Value| {
        let fields = case["properties"].as_object()?;
        fields.iter().find_map(|(name, field)| Some((name.clone(), field["const"].as_str()?.to_owned())))
    };
    let tags: Vec<_> = cases.iter().filter_map(tag_of).collect();
    let shown = (0..cases.len()).map(|at| &written[at]);
    let Some((tag, _)) = tags.first().filter(|_| tags.len() == cases.len()).cloned() else {
        return FieldShape::Either(
            cases.iter().zip(shown).map(|(read, written)| node(read, written)).collect(),
        );
    };
    let case = |(at, (_, word)): (usize, (String, String))| (word, fields(&cases[at], &written[at]));
    // A case that is only shown can be written back, and not be set.
    let is_read_only = |at: usize| cases[at]["readOnly"] == true;
    let read_only = tags.iter().enumerate().filter(|(at, _)| is_read_only(*at));
    let read_only = read_only.map(|(_, (_, word))| word.clone()).collect();
    let written = tags.into_iter().enumerate().filter(|(at, _)| !is_read_only(*at));
    FieldShape::Tagged { tag, cases: written.map(case).collect(), read_only }
}

/// The fields of a request in the order of their declaration.
pub(crate) fn ordered<'a>(read: &'a Value, written: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let all = &read["properties"];
    let mut order: Vec<&str> = names(written).into_iter().filter(|name| !all[name].is_null()).collect();
    order.extend(names(read).into_iter().filter(|name| written["properties"][name].is_null()));
    order.into_iter().map(|name| (name, &all[name])).collect()
}

fn fields(read: &Value, written: &Value) -> Vec<ShapeField> {
    let all = &read["properties"];
    let required = read["required"].as_array().map_or(&[][..], Vec::as_slice);
    let field = |name: &str| ShapeField {
        name: name.to_owned(),
        // What has a shape of its own is read by its own reader.
        node: match all[name]["x-shape"].is_string() {
            true => FieldShape::Any,
            false => node(&all[name], &written["properties"][name]),
        },
        is_required: required.iter().any(|needed| needed == name),
        refuses_null: all[name]["x-null"] == false,
        keeps_null: all[name]["x-null"] == true,
        hint: all[name]["x-required"].as_str().map(ToOwned::to_owned),
        is_merged: all[name]["x-merge"] == "deep",
    };
    ordered(read, written).into_iter().map(|(name, _)| field(name)).collect()
}
