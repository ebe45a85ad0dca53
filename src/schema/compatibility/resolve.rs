//! Where references lead inside one document: by pointer, anchor or identifier.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::schema::{
    Draft,
    fan_out::{escape, percent_decode},
    refusal::DATA_KEYWORDS,
};

/// A part of the document with its own identifier; the first is the document.
struct Resource<'d> {
    id: String,
    root: &'d Value,
    pointer: String,
    anchors: FxHashMap<String, (&'d Value, String)>,
}

/// The resources of a document and which of them each reference is relative to.
pub(super) struct Resources<'d> {
    all: Vec<Resource<'d>>,
    of_reference: FxHashMap<*const Value, usize>,
}

impl<'d> Resources<'d> {
    pub(super) fn of(document: &'d Value, draft: Draft) -> Self {
        let root = Resource {
            id: String::new(),
            root: document,
            pointer: String::new(),
            anchors: FxHashMap::default(),
        };
        let mut resources = Self {
            all: vec![root],
            of_reference: FxHashMap::default(),
        };
        let mut pending = vec![(document, String::new(), 0)];
        while let Some((value, pointer, resource)) = pending.pop() {
            match value {
                Value::Object(members) => {
                    let resource = resources.enter(value, &pointer, resource, draft);
                    let inner = members
                        .iter()
                        .filter(|(name, _)| !DATA_KEYWORDS.contains(&name.as_str()));
                    pending.extend(inner.map(|(name, member)| {
                        (member, format!("{pointer}/{}", escape(name)), resource)
                    }));
                }
                Value::Array(items) => pending.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, item)| (item, format!("{pointer}/{index}"), resource)),
                ),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        resources
    }

    /// Notes what an object names itself and gives the resource that its parts belong to.
    fn enter(&mut self, value: &'d Value, pointer: &str, outer: usize, draft: Draft) -> usize {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let id = text(if draft == Draft::Draft4 { "id" } else { "$id" });
        let id = id.filter(|_| !(draft.ref_silences_siblings() && value.get("$ref").is_some()));
        let mut resource = outer;
        if let Some(id) = id {
            if let Some(anchor) = id.strip_prefix('#') {
                self.all[outer]
                    .anchors
                    .insert(anchor.to_owned(), (value, pointer.to_owned()));
            } else if pointer.is_empty() {
                id.trim_end_matches('#').clone_into(&mut self.all[0].id);
            } else {
                resource = self.all.len();
                self.all.push(Resource {
                    id: id.trim_end_matches('#').to_owned(),
                    root: value,
                    pointer: pointer.to_owned(),
                    anchors: FxHashMap::default(),
                });
            }
        }
        for anchor in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
            let place = (value, pointer.to_owned());
            self.all[resource].anchors.insert(anchor.to_owned(), place);
        }
        if resource != 0 {
            self.of_reference.insert(value, resource);
        }
        resource
    }

    /// Whether the document is one resource, so that every scope is the same.
    pub(super) fn is_single(&self) -> bool {
        self.all.len() == 1
    }

    /// The target of `reference`, which stands in the object `holder`, with its pointer.
    pub(super) fn resolve(
        &self,
        holder: &'d Value,
        reference: &str,
    ) -> Option<(&'d Value, String)> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if base.is_empty() {
            let index = self
                .of_reference
                .get(&std::ptr::from_ref(holder))
                .copied()
                .unwrap_or(0);
            &self.all[index]
        } else {
            self.named(base)?
        };
        let fragment = percent_decode(fragment);
        if fragment.is_empty() {
            return Some((resource.root, resource.pointer.clone()));
        }
        if fragment.starts_with('/') {
            let target = resource.root.pointer(&fragment)?;
            return Some((target, format!("{}{fragment}", resource.pointer)));
        }
        resource.anchors.get(&fragment).cloned()
    }

    /// The one resource that `base` can mean: by its whole identifier, else by the end of it.
    fn named(&self, base: &str) -> Option<&Resource<'d>> {
        if let Some(exact) = self.all.iter().find(|resource| resource.id == base) {
            return Some(exact);
        }
        let tail = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
        let mut similar = self.all.iter().filter(|resource| {
            !resource.id.is_empty() && tail(&resource.id) == tail(base) && !tail(base).is_empty()
        });
        let only = similar.next()?;
        similar.next().is_none().then_some(only)
    }
}
