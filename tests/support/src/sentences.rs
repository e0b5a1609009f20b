//! Sentences that the rows of a test share. A row has the number of a sentence and its values, so that each sentence is written
//! only once, in the list below the rows.

/// The sentences so far, without their values.
#[derive(Default)]
pub struct Sentences(Vec<String>);

impl Sentences {
    /// Returns the number of the sentence, and its values, which are the words that contain a digit or a slash.
    pub fn numbered(&mut self, sentence: &str) -> String {
        let mut values = String::new();
        let words = sentence.split_whitespace().map(|word| {
            let value = word.trim_matches(['.', ',', ':', ';', '(', ')', '…']);
            if !value.contains(|letter: char| letter.is_ascii_digit() || letter == '/') {
                return word.to_owned();
            }
            values = format!("{values} {value}");
            word.replace(value, "_")
        });
        let sentence = words.collect::<Vec<_>>().join(" ");
        let known = self.0.iter().position(|known| *known == sentence);
        let place = known.unwrap_or_else(|| {
            self.0.push(sentence);
            self.0.len() - 1
        });
        format!("#{}{values}", place + 1)
    }

    /// Returns the rows, and the list below them.
    pub fn below(&self, rows: &str) -> String {
        let numbered = self.0.iter().zip(1..);
        let list = numbered.map(|(sentence, number)| format!("#{number} {sentence}\n"));
        format!("{rows}\n{}", list.collect::<String>())
    }
}
