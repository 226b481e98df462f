//! The agents under measurement, seen from outside: a bell for each, and one pipe for what they all answer.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::wait;

/// All agents of one directory. Sessions are numbered from 1, as their issues are.
pub(crate) struct Fleet {
    bells: Vec<File>,
    answers: Receiver<Answer>,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Up,
    /// The daemon's first prompt is on its terminal.
    Prompted,
    /// Its work is pushed, and waits for a review.
    Pushed,
    /// It claimed a phase and was answered, after so many milliseconds.
    Answered(f64),
}

impl Fleet {
    /// Makes the pipes, before any agent is there.
    pub(crate) fn prepare(directory: &Path, sessions: u64) -> anyhow::Result<Self> {
        let bells =
            (1..=sessions).map(|n| pipe(&directory.join(format!("bell-{n}")))).collect::<Result<_, _>>()?;
        let (sender, answers) = channel();
        let reader = BufReader::new(pipe(&directory.join("answers"))?);
        // We hold the writing end too, so this thread only ends with the process; it holds nothing but the pipe.
        std::thread::spawn(move || {
            for line in reader.lines() {
                let Ok(line) = line else { return };
                let Some(answer) = parse(&line) else { continue };
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Self { bells, answers })
    }

    /// Says a word to one agent.
    pub(crate) fn ring(&mut self, session: u64, word: &str) -> anyhow::Result<()> {
        let place = usize::try_from(session)?.checked_sub(1).context("sessions count from 1")?;
        let receiver = self.bells.get_mut(place).with_context(|| format!("there is no session {session}"))?;
        Ok(receiver.write_all(format!("{word}\n").as_bytes())?)
    }

    /// Waits for so many answers.
    pub(crate) fn hear(&self, count: usize, limit: Duration) -> anyhow::Result<Vec<Answer>> {
        let deadline = Instant::now() + limit;
        let mut heard = Vec::with_capacity(count);
        while heard.len() < count {
            wait::check()?;
            match self.answers.recv_timeout(wait::at_once(deadline)) {
                Ok(answer) => heard.push(answer),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(error) => bail!("{} of {count} agents answered within {limit:?}: {error}", heard.len()),
            }
        }
        Ok(heard)
    }
}

fn pipe(path: &Path) -> anyhow::Result<File> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Both ways, so that opening waits for nobody.
    Ok(OpenOptions::new().read(true).write(true).open(path)?)
}

fn parse(line: &str) -> Option<Answer> {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        [_, "up"] => Some(Answer::Up),
        [_, "prompted"] => Some(Answer::Prompted),
        [_, "pushed"] => Some(Answer::Pushed),
        [_, "answered", written, read] => Some(Answer::Answered((micros(read)? - micros(written)?) / 1000.0)),
        _ => None,
    }
}

/// `seconds.micros`, without losing digits to a floating point number of that size.
fn micros(text: &str) -> Option<f64> {
    let (seconds, micros) = text.split_once('.')?;
    let since_2020 = seconds.parse::<i64>().ok()? - 1_577_836_800;
    Some(since_2020 as f64 * 1e6 + micros.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{Answer, parse};

    #[test]
    fn a_reaction_is_told_in_milliseconds() {
        let line = "7 answered 1789999999.999500 1790000000.012000";
        assert_eq!(parse(line), Some(Answer::Answered(12.5)));
        assert_eq!(parse("7 up"), Some(Answer::Up));
        assert_eq!(parse("7 answered"), None);
    }
}
