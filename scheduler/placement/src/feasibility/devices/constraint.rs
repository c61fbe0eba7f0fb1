use model::document::NodeDeviceResource;

use super::value::Value;
use crate::feasibility::constraint::Operand;

/// One constraint or affinity on devices.
#[derive(Clone, Debug)]
pub struct DeviceConstraint {
    left: Side,
    right: Side,
    test: Operand,
}

#[derive(Clone, Debug)]
enum Side {
    Ids,
    Name,
    Vendor,
    Kind,
    Attribute(String),
    Literal(Value<'static>),
    /// Not a known target: never found.
    Nothing,
}

impl DeviceConstraint {
    pub fn of(left: &str, operand: &str, right: &str) -> DeviceConstraint {
        let literal = (!right.starts_with("${")).then_some(right);
        DeviceConstraint { left: Side::of(left), right: Side::of(right), test: Operand::of(operand, literal) }
    }

    /// It has to be checked for each instance.
    pub fn is_of_ids(&self) -> bool {
        matches!(self.left, Side::Ids) || matches!(self.right, Side::Ids)
    }

    /// `instance`: only this one is checked; `None`: all of them.
    pub fn holds(&self, device: &NodeDeviceResource, instance: Option<&str>) -> bool {
        let left = self.left.resolve(device, instance);
        let right = self.right.resolve(device, instance);
        match (&self.test, left, right) {
            (Operand::Elsewhere, ..) => true,
            (Operand::Never, ..) => false,
            (Operand::IsSet, left, _) => left.is_some(),
            (Operand::IsNotSet, left, _) => left.is_none(),
            (Operand::NotEqual, Some(left), Some(right)) => left.compare(&right).is_some_and(|o| o.is_ne()),
            (Operand::NotEqual, left, right) => left.is_some() != right.is_some(),
            (test, Some(left), Some(right)) => compares(test, &left, &right),
            (_, None, _) | (_, _, None) => false,
        }
    }
}

fn compares(test: &Operand, left: &Value<'_>, right: &Value<'_>) -> bool {
    match test {
        Operand::Equal => left.compare(right).is_some_and(|order| order.is_eq()),
        Operand::Order(accepts) => left.compare(right).is_some_and(accepts),
        Operand::Version | Operand::Semver => {
            test.holds(left.as_version().as_deref(), right.as_version().as_deref())
        }
        _ => test.holds(left.as_text(), right.as_text()),
    }
}

impl Side {
    fn of(text: &str) -> Side {
        let Some(target) = text.strip_prefix("${") else { return Side::Literal(Value::literal(text)) };
        match target.strip_suffix('}') {
            Some("device.ids") => Side::Ids,
            Some("device.model") => Side::Name,
            Some("device.vendor") => Side::Vendor,
            Some("device.type") => Side::Kind,
            Some(target) => match target.strip_prefix("device.attr.") {
                Some(key) => Side::Attribute(key.to_string()),
                None => Side::Nothing,
            },
            None => Side::Nothing,
        }
    }

    fn resolve<'a>(&'a self, device: &'a NodeDeviceResource, instance: Option<&'a str>) -> Option<Value<'a>> {
        match (self, instance) {
            (Side::Ids, Some(id)) => Some(Value::text(id)),
            (Side::Ids, None) => {
                let ids: Vec<&str> = device.instances.iter().map(|instance| instance.id.as_str()).collect();
                Some(Value::text(ids.join(",")))
            }
            (Side::Name, _) => Some(Value::text(device.name.as_str())),
            (Side::Vendor, _) => Some(Value::text(device.vendor.as_str())),
            (Side::Kind, _) => Some(Value::text(device.kind.as_str())),
            (Side::Attribute(key), _) => device.attributes.get(key).and_then(Value::attribute),
            (Side::Literal(value), _) => Some(value.clone()),
            (Side::Nothing, _) => None,
        }
    }
}
