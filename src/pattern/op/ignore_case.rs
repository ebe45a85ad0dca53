//! `equals-ignore-case`: a string in any case, alone or inside `prefix` and `suffix`.

use super::Op;
use crate::pattern::error::{Error, Fault};
use crate::pattern::text::Node;

const NAME: &str = "equals-ignore-case";

/// Reads the operand of `equals-ignore-case`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Op, Error> {
    Ok(Op::IgnoreCase(node.text(NAME)?.into()))
}

/// Reads `{"equals-ignore-case": "…"}` as the operand of `operator`.
pub(crate) fn parse_inner(
    node: &Node<'_>,
    members: &[(String, Node<'_>)],
    operator: &'static str,
) -> Result<Box<str>, Error> {
    match members {
        [(name, operand)] if name == NAME => operand
            .text(NAME)
            .map(Into::into)
            .map_err(|error| error.under(NAME)),
        [(name, _)] => Err(node.fault(Fault::UnknownOperator {
            name: name.clone(),
            meant: Some(NAME),
        })),
        [] => Err(node.fault(Fault::NotAString { operator })),
        _ => Err(node.fault(Fault::NotOneKey)),
    }
}
