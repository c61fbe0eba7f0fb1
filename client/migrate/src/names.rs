//! Names that people gave, where they would do harm as they are: as names of files, and as words of a script.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Longest name of a file without its extension: file systems take 255 bytes, and `.variables.json` follows.
const FILE_NAME_MAX: usize = 200;

/// What stands for the end of a name that is too long: `~~` and 16 hexadecimal digits.
const DIGEST_LEN: usize = 18;

/// The name of a file for an object of this name: letters, digits, `-`, `_` and dots stay, but for a dot at the beginning;
/// every other byte is `~` and two hexadecimal digits. Different names have different files.
pub(crate) fn file_name(name: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            b'.' if at > 0 => encoded.push('.'),
            _ => encoded.push_str(&format!("~{byte:02X}")),
        }
    }
    if encoded.len() > FILE_NAME_MAX {
        let mut digest = DefaultHasher::new();
        name.hash(&mut digest);
        encoded.truncate(FILE_NAME_MAX - DIGEST_LEN);
        encoded.push_str(&format!("~~{:016x}", digest.finish()));
    }
    encoded
}

/// A word for a POSIX shell that means exactly this text.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A name on one line: control characters, which could also move the cursor of a terminal, are escaped, and so is `\`, or
/// different names could look the same.
pub(crate) fn shown(name: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '\\';
    let escape = |c: char| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() };
    name.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_stays_in_its_folder_and_is_not_hidden() {
        for (name, file) in [
            ("web", "web"),
            ("web_2.eu-1", "web_2.eu-1"),
            ("..", "~2E."),
            (".", "~2E"),
            ("../../etc/passwd", "~2E.~2F..~2Fetc~2Fpasswd"),
            ("nomad/jobs/a b", "nomad~2Fjobs~2Fa~20b"),
            ("a~2Fb", "a~7E2Fb"),
            ("ä\n", "~C3~A4~0A"),
            ("", ""),
        ] {
            assert_eq!(file_name(name), file, "{name}");
        }
    }

    #[test]
    fn long_names_that_differ_at_their_ends_have_files_that_file_systems_take() {
        let [first, second] = ["1", "2"].map(|end| file_name(&("/".repeat(300) + end)));
        assert_eq!((first.len(), second.len()), (FILE_NAME_MAX, FILE_NAME_MAX));
        assert_ne!(first, second);
    }

    #[test]
    fn a_quoted_word_reaches_a_program_as_it_was() {
        for text in ["web", "a b", "it's", "$(touch x)", "`x`", "\\", "\"", "*", "", "a\nb", "'; exit 1; '"] {
            let shell = std::process::Command::new("/bin/sh");
            let output = { shell }.arg("-c").arg(format!("printf %s {}", quoted(text))).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    fn a_name_takes_one_line() {
        assert_eq!(shown("a/b ä"), "a/b ä");
        assert_ne!(shown("a\nb"), shown("a\\nb"));
        assert_eq!(shown("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
    }
}
