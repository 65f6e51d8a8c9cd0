//! What runs leave outside of the engine: worktrees and conversations.

use std::path::Path;
use std::time::UNIX_EPOCH;

use sage_agents::session::Record as Session;
use sage_agents::worktree::{self, Reaper, Record as Lease};
use sage_engine::gc::{Category, Fate, Gc, Item, tree_bytes};

use super::super::context::Context;

/// Worktrees of runs that are over, if nothing in them would be lost.
pub fn worktrees(context: &Context, gc: &mut Gc<'_>) {
    let dir = context.project.dir.join("worktrees");
    let leases = match worktree::list(&dir, context.key.as_ref()) {
        Ok(leases) => leases,
        Err(error) => return gc.report.failed(Category::Worktrees, dir.display().to_string(), error),
    };
    for file in &leases.damaged {
        gc.report.kept(
            Category::Worktrees,
            file.display().to_string(),
            "its record cannot be read, or you did not write it",
        );
    }
    let old: Vec<(Lease, u64)> =
        leases.found.into_iter().filter_map(|lease| over_since(gc, &lease).map(|at| (lease, at))).collect();
    if !dir.is_dir() {
        return;
    }
    match Reaper::new(&context.project.root, &dir) {
        Ok(reaper) => {
            old.iter().for_each(|(lease, at_ms)| one_worktree(context, gc, &reaper, lease, *at_ms));
            if !gc.policy().dry_run {
                reaper.sweep(|run| gc.is_gone(run));
            }
        }
        Err(why) => old.iter().for_each(|(lease, _)| {
            gc.report.kept(Category::Worktrees, lease.path.display().to_string(), why.clone());
        }),
    }
}

/// Since when nobody needs it, if that is long enough ago.
fn over_since(gc: &Gc<'_>, lease: &Lease) -> Option<u64> {
    let at_ms = match gc.fate(&lease.run) {
        Fate::Open => return None,
        Fate::Closed { ended_ms } => ended_ms,
        Fate::Gone => modified_ms(&lease.path.with_file_name(record_name(lease)))?,
    };
    gc.is_old(at_ms).then_some(at_ms)
}

fn record_name(lease: &Lease) -> String {
    format!("{}.json", lease.path.file_name().unwrap_or_default().to_string_lossy())
}

fn one_worktree(context: &Context, gc: &mut Gc<'_>, reaper: &Reaper, lease: &Lease, at_ms: u64) {
    let name = lease.path.display().to_string();
    let item = Item {
        category: Category::Worktrees,
        name: name.clone(),
        bytes: tree_bytes(context.disk.as_ref(), &lease.path),
        age_ms: Some(gc.age_ms(at_ms)),
        feature: Some(lease.feature.clone()),
    };
    let force = gc.policy().force;
    let done = if gc.policy().dry_run {
        let losses = reaper.losses(lease);
        losses.and_then(|losses| if losses.none() || force { Ok(()) } else { Err(losses.text()) })
    } else if gc.is_gone(&lease.run) {
        reaper.remove(lease, force)
    } else {
        // A run that is there could be resumed right now, and its steps would look for their worktrees.
        match gc.hold(&lease.feature) {
            Some(_held) => reaper.remove(lease, force),
            None => Err("somebody has its feature".into()),
        }
    };
    match done {
        Ok(()) => gc.report.removed(item),
        Err(why) => gc.report.kept(Category::Worktrees, name, why),
    }
}

/// Conversations of single steps, when their runs are gone. Those with a name are people's, and stay.
pub fn sessions(context: &Context, gc: &mut Gc<'_>) {
    let store = context.sessions();
    let all = match store.list() {
        Ok(all) => all,
        Err(error) => return gc.report.failed(Category::Sessions, "sessions", error),
    };
    let over: Vec<Session> = all.into_iter().flatten().filter(|session| is_over(gc, session)).collect();
    for session in over {
        let item = Item {
            category: Category::Sessions,
            name: session.id.clone(),
            bytes: tree_bytes(context.disk.as_ref(), &store.path(&session.id)),
            age_ms: Some(gc.age_ms(session.updated_ms)),
            feature: None,
        };
        let deleted = if gc.policy().dry_run { Ok(()) } else { store.delete(&session.id) };
        match deleted {
            Ok(()) => gc.report.removed(item),
            Err(error) => gc.report.kept(Category::Sessions, session.id, error.to_string()),
        }
    }
}

fn is_over(gc: &Gc<'_>, session: &Session) -> bool {
    let gone = || session.turns.iter().all(|turn| gc.is_gone(&turn.run));
    !session.named && gc.is_old(session.updated_ms) && gone()
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
