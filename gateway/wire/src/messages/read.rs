use model::document::List;
use serde::{Deserialize, Serialize};

use super::{QueryMeta, QueryOptions};

/// `Variables.Read`. Answered with [`DataResponse`], without data when there is no such variable.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableReadRequest {
    pub path: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// `ServiceRegistration.GetService`. Answered with [`ServicesResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceGetRequest {
    pub service_name: String,
    /// How many instances, a bar, and the key that chooses them; empty for all.
    pub choose: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// `Variables.List`, answered with [`DataResponse`], and `ServiceRegistration.List`, with [`ServicesResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ListRequest {
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// The answer to reads of variables.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct DataResponse<T> {
    pub data: Option<T>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// The answer to reads of services.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct ServicesResponse<T> {
    pub services: List<T>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}
