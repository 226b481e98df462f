//! The inbox on a terminal: reads what a person decides by, and carries decisions out. The screen is in `crate::tui`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

use pointsman_core::ids::{Number, Sha};
use pointsman_core::part::question::{Question, QuestionId, Ranked};
use pointsman_core::review::{comments, outside_first};
use pointsman_core::session::budget::{self, Limit};
use pointsman_core::task::Order as TaskOrder;
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::words;
use pointsman_view::forge::{PullRequest, Review};
use pointsman_view::inbox as view;
use pointsman_view::task::Ordered;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::context::Context;
use super::failure::Failure;
use super::{evidence, inbox, pages, rounds, session_attach, task, time};
use crate::control::protocol::{ForgeCommand, InboxCommand, Request};
use crate::tui::draw;
use crate::tui::model::{Entry, Order, Screen, Tab};

/// The inbox is read again this often, or as soon as a key is pressed.
const LOOK: Duration = Duration::from_secs(1);
/// The most of one view.
const VIEW_BYTES: usize = 2 << 20;
/// The longest text from an editor, with the diff that was quoted in it.
const ANSWER_BYTES: u64 = 4 << 20;
/// The largest diff that is quoted in an editor.
const QUOTED_BYTES: usize = 1 << 20;

/// The views that were read, by question. A question that is asked again has another number.
#[derive(Default)]
struct Views {
    texts: BTreeMap<(u64, &'static str, bool), Vec<String>>,
    /// The commits that the person had looked at before, by question.
    looks: BTreeMap<u64, Option<Sha>>,
}

/// Shows the inbox until the person leaves.
pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let mut screen = Screen::new(entries(context)?);
    if screen.entries.is_empty() {
        context.out.say(words::screen::EMPTY);
        return Ok(());
    }
    let mut terminal = ratatui::try_init()?;
    let shown = follow(context, &mut terminal, &mut screen);
    ratatui::restore();
    shown
}

fn follow(context: &Context, terminal: &mut DefaultTerminal, screen: &mut Screen) -> Result<(), Failure> {
    let mut views = Views::default();
    loop {
        screen.pane = pane(context, screen, &mut views);
        terminal.draw(|frame| draw::draw(frame, screen))?;
        if !event::poll(LOOK)? {
            screen.refresh(entries(context)?);
            continue;
        }
        // A resize only draws again.
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        match screen.key(key) {
            Some(Order::Quit) => return Ok(()),
            Some(order) => {
                let done = carry_out(context, terminal, screen, order);
                screen.message = done.unwrap_or_else(|failure| clean_line(failure.message(), 400));
                views.texts.clear();
                screen.refresh(entries(context)?);
            }
            None => {}
        }
    }
}

fn entries(context: &Context) -> Result<Vec<Entry>, Failure> {
    let Some(store) = context.store()? else { return Ok(Vec::new()) };
    let mut questions = inbox::open(context, &store)?;
    if let Some(project) = &context.wanted {
        questions.retain(|ranked| ranked.asked.source.project == *project);
    }
    let now = time::now();
    let entry = |Ranked { asked, held_up, lines }: Ranked| {
        let mut facts = vec![time::relative(asked.asked_at, now)];
        facts.extend(lines.map(words::page::lines));
        facts.extend((held_up > 0).then(|| format!("holds up {}", words::page::other_tasks(held_up))));
        Some(Entry {
            id: asked.id?.0,
            about: inbox::about(&asked),
            subject: clean_line(&asked.subject, 200),
            facts: facts.join(", "),
            kind: asked.kind,
            issue: asked.source.issue,
            pr: asked.source.pr,
            project: asked.source.project,
        })
    };
    Ok(questions.into_iter().filter_map(entry).collect())
}

/// The same context, in the project of a question.
fn inside(context: &Context, entry: &Entry) -> Context {
    Context { wanted: Some(entry.project.clone()), ..context.clone() }
}

/// The view that is shown. What cannot be read says why.
fn pane(context: &Context, screen: &Screen, views: &mut Views) -> Vec<String> {
    let Some(entry) = screen.current() else { return vec![words::screen::EMPTY.to_owned()] };
    let key = (entry.id, screen.tab.name(), screen.since && screen.tab == Tab::Diff);
    if let Some(known) = views.texts.get(&key) {
        return known.clone();
    }
    let context = inside(context, entry);
    let text = match screen.tab {
        Tab::Question => question(&context, entry),
        Tab::Diff => diff(&context, entry, screen.since, &mut views.looks),
        Tab::Ci => ci(&context, entry),
        Tab::Findings => findings(&context, entry),
        Tab::Session => last_words(&context, entry),
    };
    let text = text.unwrap_or_else(|failure| failure.message().to_owned());
    let text = clean_block(&text, VIEW_BYTES).replace('\t', "    ");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // A session that works has more to say in a moment.
    if screen.tab != Tab::Session {
        views.texts.insert(key, lines.clone());
    }
    lines
}

fn asked(context: &Context, entry: &Entry) -> Result<Option<Question>, Failure> {
    Ok(match context.store()? {
        Some(store) => store.question(QuestionId(entry.id))?,
        None => None,
    })
}

fn question(context: &Context, entry: &Entry) -> Result<String, Failure> {
    let Some(asked) = asked(context, entry)? else { return Ok(entry.subject.clone()) };
    let mut text = vec![
        format!("Question {}: {}", entry.id, words::question::heading(asked.kind)),
        format!("{} {}, {}", entry.project, entry.about, entry.facts),
        String::new(),
        asked.text().to_owned(),
        String::new(),
    ];
    text.extend(inbox::artifacts(context, &asked).lines().iter().map(|line| format!("artifact {line}")));
    if let Some(issue) = entry.issue {
        let project = context.project()?;
        if let Ok((known, store)) = context.task(&project, issue) {
            let spent = task::spent(Some(&store), &known)?;
            text.push(format!("#{issue} {} is {}.", known.title, known.state));
            let limit = Limit::per_task(&project.config.budget);
            text.extend(budget::describe(spent, limit).map(|told| format!("Cost so far: {told}")));
        }
        text.extend(issue_body(context, issue));
    }
    text.extend(words::question::settle(&asked));
    Ok(text.join("\n"))
}

/// The text of the issue, wherever it is. It is read once for each question.
fn issue_body(context: &Context, number: Number) -> Option<String> {
    Some(format!("\n{}\n", issue(context, number)?.1))
}

/// The title and the text of an issue: what was asked for.
fn asked_for(context: &Context, number: Number) -> Option<String> {
    issue(context, number).map(|(title, body)| format!("{title}\n{body}"))
}

fn issue(context: &Context, number: Number) -> Option<(String, String)> {
    let project = context.project().ok()?;
    if let Some(server) = context.on_server(&project.config).ok()? {
        let issue = server.issue(number).ok()??;
        return Some((issue.title, issue.body));
    }
    pages::issue(context, number).map(|issue| (issue.title, issue.body))
}

/// The diff of a pull request, or only what is new in it. To show it is a look.
fn diff(
    context: &Context,
    entry: &Entry,
    since: bool,
    looks: &mut BTreeMap<u64, Option<Sha>>,
) -> Result<String, Failure> {
    let Some(pr) = entry.pr else { return Ok(words::screen::NO_DIFF.to_owned()) };
    let before = || rounds::last_look(context, &entry.project, pr);
    let before = looks.entry(entry.id).or_insert_with(before).clone();
    let read = match since {
        true => rounds::read_since(context, pr, before.as_ref())?,
        false => evidence::read_diff(context, pr, false)?,
    };
    rounds::remember(context, &entry.project, pr, &read.head_sha);
    let text = read.diff.unwrap_or_default();
    Ok(match (since, &read.since_sha) {
        (false, _) => {
            let asked = entry.issue.and_then(|issue| asked_for(context, issue)).unwrap_or_default();
            let (ordered, outside) = outside_first(&text, &asked);
            match outside.is_empty() {
                true => ordered,
                false => format!("{}\n\n{ordered}", words::screen::outside(&outside)),
            }
        }
        (true, Some(sha)) if *sha == read.head_sha => words::screen::nothing_since(sha),
        (true, sha) => format!("{}\n\n{text}", words::screen::since(sha.as_ref())),
    })
}

fn ci(context: &Context, entry: &Entry) -> Result<String, Failure> {
    let Some(number) = entry.issue.or(entry.pr) else { return Ok(words::screen::NO_LOG.to_owned()) };
    let log = evidence::read_ci_log(context, number, None)?;
    Ok(format!("{}\n\n{}", evidence::headline(&log), log.log))
}

fn findings(context: &Context, entry: &Entry) -> Result<String, Failure> {
    let Some(number) = entry.pr else { return Ok(words::screen::NO_FINDINGS.to_owned()) };
    let project = context.project()?.config.name;
    let request = Request::Forge { project, command: ForgeCommand::ShowPull { number } };
    let pull: PullRequest = rounds::with_line_comments(context, context.ask(&request)?);
    let shown = |review: &Review| {
        let mut text =
            words::screen::review(&review.author, review.verdict, review.sha.short(), &review.body);
        for line in &review.lines {
            text.push('\n');
            text.push_str(&words::screen::line_comment(line.handled, &line.file, line.line, &line.text));
        }
        text
    };
    let reviews: Vec<String> = pull.reviews.iter().map(shown).collect();
    Ok(if reviews.is_empty() { words::screen::NO_FINDINGS.to_owned() } else { reviews.join("\n") })
}

/// The end of the transcript of the newest session, with what its sandbox refused.
fn last_words(context: &Context, entry: &Entry) -> Result<String, Failure> {
    let Some(issue) = entry.issue else { return Ok(words::screen::NO_SESSION.to_owned()) };
    let (row, text) = pages::last_words(context, issue)?;
    let refused = context.paths.project(&row.project).refused(&row.session);
    let refused = std::fs::read_to_string(refused).unwrap_or_default();
    let refused = if refused.trim().is_empty() { String::new() } else { format!("refused:\n{refused}\n") };
    // The newest words first on the screen: nobody scrolls to the end of a transcript.
    let lines: Vec<&str> = text.lines().rev().collect();
    Ok(format!("{}\n\n{refused}{}", row.session, lines.join("\n")))
}

/// Carries an order out and says what was done.
fn carry_out(
    context: &Context,
    terminal: &mut DefaultTerminal,
    screen: &Screen,
    order: Order,
) -> Result<String, Failure> {
    let Some(entry) = screen.current() else { return Ok(String::new()) };
    let by = context.author();
    let command = match order {
        Order::Approve | Order::AllowHosts => InboxCommand::Approve { by },
        Order::Dismiss => InboxCommand::Dismiss { by },
        Order::RequestChanges => match changes(context, terminal, entry)? {
            Some(reason) => InboxCommand::Reject { reason, by },
            None => return Ok(words::screen::CANCELLED.to_owned()),
        },
        Order::Answer => match written(context, terminal, words::screen::ANSWER, entry)? {
            Some(text) => InboxCommand::Answer { text, by },
            None => return Ok(words::screen::CANCELLED.to_owned()),
        },
        Order::StartAfresh => {
            let Some(issue) = entry.issue else { return Ok(String::new()) };
            let order = TaskOrder::RestartFresh;
            let request = Request::Order { project: entry.project.clone(), issue, order };
            let _: Ordered = context.ask(&request)?;
            return Ok(words::screen::afresh(issue));
        }
        Order::Attach => {
            let Some(issue) = entry.issue else { return Ok(String::new()) };
            let project = entry.project.as_str().to_owned();
            let words = ["--project".to_owned(), project, "session".to_owned(), "attach".to_owned()];
            away(terminal, || session_attach::run_ourselves(&words, issue))?;
            return Ok(String::new());
        }
        Order::Browse => return browse(&inside(context, entry), terminal, entry),
        Order::Quit => return Ok(String::new()),
    };
    let question = QuestionId(entry.id);
    let project = entry.project.clone();
    let _: view::Question = context.ask(&Request::Inbox { project, question, command })?;
    Ok(words::question::done(question))
}

/// Opens the page of the pull request, or of the issue if there is none. The address is the forge's and a number, never
/// text from outside.
fn browse(context: &Context, terminal: &mut DefaultTerminal, entry: &Entry) -> Result<String, Failure> {
    let config = context.project()?.config;
    let Some(forge) = context.on_server(&config)? else {
        let command = match (entry.pr, entry.issue) {
            (Some(pr), _) => format!("pointsman forge pr show {pr}"),
            (None, Some(issue)) => format!("pointsman forge issue show {issue}"),
            (None, None) => return Ok(String::new()),
        };
        return Ok(words::screen::no_page(&command));
    };
    let link = match (entry.pr, entry.issue) {
        (Some(pr), _) => forge.pull_request_link(pr),
        (None, Some(issue)) => forge.issue_link(issue),
        (None, None) => return Ok(String::new()),
    };
    // It may be one for the terminal.
    away(terminal, || session_attach::browse(&context.browser(), &link))?;
    Ok(words::screen::opened(&link))
}

/// Something else has the terminal for a while.
fn away<T>(terminal: &mut DefaultTerminal, then: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    ratatui::restore();
    let done = then();
    *terminal = ratatui::try_init()?;
    terminal.clear()?;
    done
}

/// The changes that a person wants, with comments on lines of the diff; none if they write nothing.
fn changes(
    context: &Context,
    terminal: &mut DefaultTerminal,
    entry: &Entry,
) -> Result<Option<String>, Failure> {
    let within = inside(context, entry);
    let diff =
        entry.pr.and_then(|pr| evidence::read_diff(&within, pr, false).ok()).and_then(|read| read.diff);
    // Of a diff that is larger than an editor is good for, nothing is quoted.
    let diff = diff.filter(|diff| diff.len() < QUOTED_BYTES).unwrap_or_default();
    let mut template = words::screen::template(words::screen::REQUEST_CHANGES, &entry.subject);
    if !diff.is_empty() {
        template.push_str(words::screen::COMMENT_ON_LINES);
        template.push_str(&comments::quoted(&clean_block(&diff, QUOTED_BYTES)));
    }
    let feedback = comments::read_edited(&edited(context, terminal, &template)?);
    let body = comments::body(&feedback);
    Ok((!body.is_empty()).then_some(body))
}

/// A text that the person writes in their editor; none if they leave it empty.
fn written(
    context: &Context,
    terminal: &mut DefaultTerminal,
    what: &str,
    entry: &Entry,
) -> Result<Option<String>, Failure> {
    let text = edited(context, terminal, &words::screen::template(what, &entry.subject))?;
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let kept = kept.join("\n").trim().to_owned();
    Ok((!kept.is_empty()).then_some(kept))
}

/// A template as the person's editor leaves it.
fn edited(context: &Context, terminal: &mut DefaultTerminal, template: &str) -> Result<String, Failure> {
    let mut file = tempfile::Builder::new().prefix("pointsman-").suffix(".md").tempfile()?;
    file.write_all(template.as_bytes())?;
    file.flush()?;
    away(terminal, || session_attach::edit(&context.editor(), file.path()))?;
    let mut text = String::new();
    // An editor may have put another file in its place.
    std::fs::File::open(file.path())?.take(ANSWER_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
