//! Kahn's algorithm over any directed graph: order, levels, longest paths, or the cycle. O(V + E), no recursion.
//!
//! The in-degree of a node is the number of edges that END there. (A well-known sample counts them on the
//! other side and calls a -> b a cycle; `a_to_b_is_not_a_cycle` is the test.)

/// A directed graph over the nodes `0..n`. Edges are kept in the order they were added.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    edges: Vec<Vec<u32>>,
}

/// A topological order. Nodes that become free together keep their numeric order, so the result is total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub nodes: Vec<u32>,
}

/// Nodes of one cycle, in edge order; the first is not repeated at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<u32>);

impl Graph {
    pub fn new(nodes: usize) -> Graph {
        Graph { edges: vec![Vec::new(); nodes] }
    }

    pub fn edge(&mut self, from: u32, to: u32) {
        self.edges[from as usize].push(to);
    }

    pub fn successors(&self, node: u32) -> &[u32] {
        &self.edges[node as usize]
    }

    pub fn order(&self) -> Result<Order, Cycle> {
        let mut incoming = vec![0u32; self.edges.len()];
        for &to in self.edges.iter().flatten() {
            incoming[to as usize] += 1;
        }
        let mut nodes: Vec<u32> =
            (0..self.edges.len() as u32).filter(|&n| incoming[n as usize] == 0).collect();
        let mut next = 0;
        while next < nodes.len() {
            for &to in self.successors(nodes[next]) {
                incoming[to as usize] -= 1;
                if incoming[to as usize] == 0 {
                    nodes.push(to);
                }
            }
            next += 1;
        }
        if nodes.len() == self.edges.len() { Ok(Order { nodes }) } else { Err(self.cycle(&incoming)) }
    }

    /// Every node that Kahn left over has a predecessor that was left over too: walking back must close a loop.
    fn cycle(&self, incoming: &[u32]) -> Cycle {
        let left = |n: u32| incoming[n as usize] > 0;
        let mut before = vec![u32::MAX; self.edges.len()];
        for from in (0..self.edges.len() as u32).filter(|&n| left(n)) {
            for &to in self.successors(from).iter().filter(|&&to| left(to)) {
                if before[to as usize] == u32::MAX {
                    before[to as usize] = from;
                }
            }
        }
        let mut seen = vec![false; self.edges.len()];
        let Some(mut at) = (0..self.edges.len() as u32).find(|&n| left(n)) else {
            return Cycle(Vec::new());
        };
        while !seen[at as usize] {
            seen[at as usize] = true;
            at = before[at as usize];
        }
        let mut path = vec![at];
        let mut back = before[at as usize];
        while back != at {
            path.push(back);
            back = before[back as usize];
        }
        path.reverse();
        let smallest = path.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(i, _)| i);
        path.rotate_left(smallest);
        Cycle(path)
    }

    /// For each node the largest sum of weights of the nodes strictly before it on any path.
    pub fn depth(&self, order: &Order, weight: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut depth = vec![0u32; self.edges.len()];
        for &from in &order.nodes {
            let reach = depth[from as usize] + weight(from);
            for &to in self.successors(from) {
                depth[to as usize] = depth[to as usize].max(reach);
            }
        }
        depth
    }

    /// For each node the largest sum of weights on any path that starts with it, itself included.
    pub fn height(&self, order: &Order, weight: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut height = vec![0u32; self.edges.len()];
        for &node in order.nodes.iter().rev() {
            let below = self.successors(node).iter().map(|&to| height[to as usize]).max().unwrap_or(0);
            height[node as usize] = below + weight(node);
        }
        height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, edges: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::new(nodes);
        edges.iter().for_each(|&(from, to)| graph.edge(from, to));
        graph
    }

    // covers: R2
    #[test]
    fn a_to_b_is_not_a_cycle() {
        assert_eq!(graph(2, &[(0, 1)]).order().unwrap().nodes, [0, 1]);
    }

    // covers: R2
    #[test]
    fn shapes_are_ordered() {
        /// Name, nodes, edges, the order, the levels.
        type Case<'a> = (&'a str, usize, &'a [(u32, u32)], &'a [u32], &'a [u32]);
        let cases: [Case<'_>; 6] = [
            ("none", 3, &[], &[0, 1, 2], &[0, 0, 0]),
            ("single", 1, &[], &[0], &[0]),
            ("chain", 3, &[(2, 1), (1, 0)], &[2, 1, 0], &[2, 1, 0]),
            ("diamond", 4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[0, 1, 2, 3], &[0, 1, 1, 2]),
            ("star", 4, &[(0, 1), (0, 2), (0, 3)], &[0, 1, 2, 3], &[0, 1, 1, 1]),
            ("two trees", 4, &[(0, 1), (2, 3)], &[0, 2, 1, 3], &[0, 1, 0, 1]),
        ];
        for (name, nodes, edges, want, levels) in cases {
            let graph = graph(nodes, edges);
            let order = graph.order().unwrap();
            assert_eq!(order.nodes, want, "{name}");
            assert_eq!(graph.depth(&order, |_| 1), levels, "{name}");
        }
    }

    // covers: R2
    #[test]
    fn a_cycle_is_told_with_its_path() {
        assert_eq!(graph(1, &[(0, 0)]).order(), Err(Cycle(vec![0])));
        assert_eq!(graph(5, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]).order(), Err(Cycle(vec![1, 2, 3])));
    }

    // covers: R2
    #[test]
    fn a_hundred_thousand_nodes_need_no_stack() {
        let mut chain = Graph::new(100_000);
        (1..100_000).for_each(|n| chain.edge(n - 1, n));
        let order = chain.order().unwrap();
        assert_eq!(chain.height(&order, |_| 1)[0], 100_000);
        chain.edge(99_999, 0);
        assert_eq!(chain.order().unwrap_err().0.len(), 100_000);
    }
}
