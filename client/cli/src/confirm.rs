//! Asks for confirmation, for example when an id was shortened.

use std::io::{self, BufRead, IsTerminal};

use crate::call::Failure;
use crate::flags::Flag;
use crate::output::{write_err, write_out};

/// For commands that ask for confirmation otherwise.
pub(crate) const YES: Flag<bool> = Flag::switch("yes", "Ask no questions.");

/// Asks `question`. Only an exact `y` is a yes; anything else prints `canceled`.
///
/// # Errors
/// When the answer is neither, or nobody is there to answer.
pub(crate) fn confirmed(question: &str, what: &str, canceled: &str) -> Result<bool, Failure> {
    write_out(format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer).map_err(anyhow::Error::from)?;
    if read == 0 && !io::stdin().is_terminal() {
        write_out("\n");
        let why = format!(
            "This needs a confirmation, and the input is no terminal: no {what}. -yes asks no questions"
        );
        return Err(Failure::Code(1, why));
    }
    parse_answer(answer.trim_end_matches(['\n', '\r']), what).inspect(|yes| {
        if !yes {
            write_err(canceled);
        }
    })
}

/// `y` is a yes; nothing and whatever begins with `n` a no; the rest is a mistake.
fn parse_answer(answer: &str, what: &str) -> Result<bool, Failure> {
    match answer {
        "y" => Ok(true),
        "" => Ok(false),
        no if no.to_lowercase().starts_with('n') => Ok(false),
        "Y" | "yes" | "Yes" => {
            Err(Failure::Code(0, format!("For confirmation, an exact 'y' is required: no {what}")))
        }
        other => Err(anyhow::anyhow!("No confirmation detected: \"{other}\" is neither y nor n").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_y_is_a_yes() {
        assert!(matches!(parse_answer("y", "job stop"), Ok(true)));
        for answer in ["", "n", "N", "no"] {
            assert!(matches!(parse_answer(answer, "job stop"), Ok(false)), "{answer}");
        }
        assert!(matches!(parse_answer("yes", "job stop"), Err(Failure::Code(0, _))));
        assert!(matches!(parse_answer("sure", "job stop"), Err(Failure::Failed(_))));
    }
}
