//! Descriptions of deployments. Clients look for them word for word.

pub const RUNNING: &str = "Deployment is running";
pub const NEEDS_PROMOTION: &str = "Deployment is running but requires manual promotion";
pub const PROMOTES_ITSELF: &str = "Deployment is running pending automatic promotion";
pub const PAUSED: &str = "Deployment is paused";
pub const SUCCESSFUL: &str = "Deployment completed successfully";
pub const JOB_STOPPED: &str = "Cancelled because job is stopped";
pub const NEWER_VERSION: &str = "Cancelled due to newer version of job";
pub const MARKED_AS_FAILED: &str = "Deployment marked as failed";
pub const UNHEALTHY: &str = "Failed due to unhealthy allocations";
pub const TOO_SLOW: &str = "Failed due to progress deadline";
pub const PEER_FAILED: &str = "Failed due to a failed deployment in a peer region";
pub const WAITS_FOR_PEER: &str = "Deployment is complete but waiting for peer region";
pub const WAITS_TO_BEGIN: &str = "Deployment is pending, waiting for peer region";
