use std::error::Error;

/// An error with its sources, from the outside in: what an error of a connection says by itself is seldom what happened.
pub fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(below) = source {
        text += &format!(": {below}");
        source = below.source();
    }
    text
}
